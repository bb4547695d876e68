//! Files larger than the memory they get, pipes, patterns, archives.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod program;

use std::fs;

use batchla::npy::{self, IntegerReader, read};

use crate::program::{Bench, numpy};

/// A file of some 20 MB.
fn large(bench: &Bench) {
    bench.well(&["generate", "planted:zero-column", "--batch", "10000", "--order", "16", "-o", "a.npy"]);
}

#[test]
fn a_bound_of_memory_changes_no_bit_of_any_result() {
    let bench = Bench::new();
    large(&bench);
    bench.well(&["generate", "right-hand-sides", "--batch", "10000", "--order", "16", "--columns", "2", "-o", "b.npy"]);
    for (bound, suffix) in [("1TB", "whole"), ("500kB", "parts")] {
        let name = |what: &str| format!("{what}-{suffix}");
        let [x, lu, p, s, d] = ["x.npy", "lu.npy", "p.npy", "s.npy", "d.npy"].map(name);
        let o = name("o.csv");
        let commands = [
            vec!["invert", "a.npy", "-o", &x, "--outcomes", &o],
            vec!["factorize", "a.npy", "-o", &lu, "-p", &p],
            vec!["solve", "a.npy", "b.npy", "-o", &s],
            vec!["det", "a.npy", "-o", &d],
        ];
        for command in commands {
            let (code, summary) = bench.summary(&[&command[..], &["--memory", bound, "--backend", "cpu"]].concat());
            assert_eq!((code, summary["singular"]["count"].as_u64()), (2, Some(3333)), "{summary}");
        }
    }
    for what in ["x.npy", "lu.npy", "p.npy", "s.npy", "d.npy", "o.csv"] {
        assert!(bench.bytes(&format!("{what}-whole")) == bench.bytes(&format!("{what}-parts")), "{what}");
    }
}

#[test]
fn memory_stays_near_its_bound() {
    let bench = Bench::new();
    bench.well(&["generate", "uniform", "--batch", "100000", "--order", "16", "-o", "a.npy"]);
    assert!(fs::metadata(bench.path("a.npy")).unwrap().len() > 200_000_000);
    // Every thread has scratch memory of its own.
    let on_two = ["--backend", "cpu", "--threads", "2"];
    let within = |words: &[&str]| bench.summary(&[words, &on_two].concat());
    let (code, summary) = within(&["invert", "a.npy", "-o", "x.npy", "--memory", "32MB"]);
    // Where the system tells.
    let peak = summary["peak_bytes"].as_u64();
    assert!(code == 0 && (peak.is_none() || peak < Some(32_000_000 * 13 / 10)), "{summary}");
    let (_, little) = within(&["det", "a.npy", "-o", "d.npy", "--memory", "3MB"]);
    assert!(little["peak_bytes"].as_u64() < peak.or(Some(1)), "{little}");
}

#[test]
fn a_bound_below_three_matrices_says_what_is_needed() {
    let bench = Bench::new();
    bench.well(&["generate", "uniform", "--batch", "3", "--order", "100", "-o", "a.npy"]);
    let text = bench.error(&["invert", "a.npy", "-o", "x.npy", "--memory", "200kB"], &["a.npy"]);
    let needed = text.trim_end().rsplit(' ').next().unwrap();
    assert_eq!(needed, "320.1kB", "{text}");
    bench.well(&["invert", "a.npy", "-o", "x.npy", "--memory", needed]);
    assert!(bench.error(&["invert", "a.npy", "-o", "y.npy", "--memory", "much"], &["a.npy", "x.npy"]).contains("much"));
}

#[test]
fn a_pipe_gives_the_same_bytes_as_a_file() {
    let bench = Bench::new();
    large(&bench);
    bench.batchla(&["invert", "a.npy", "-o", "x.npy"]);
    let output = bench.fed(&["invert", "-", "-o", "-", "--memory", "1MB"], &bench.bytes("a.npy"));
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout == bench.bytes("x.npy"));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.starts_with("standard input: 10000 matrices") && told.contains("written to standard output"),
        "{told}"
    );
    assert_eq!(bench.names(), ["a.npy", "x.npy"]);
    let text = bench.error(&["solve", "-", "-", "-o", "y.npy"], &["a.npy", "x.npy"]);
    assert!(text.contains("standard input can be read once"), "{text}");
}

#[test]
fn standard_output_gets_nothing_but_the_array() {
    let bench = Bench::new();
    bench.well(&["generate", "uniform", "--batch", "7", "--order", "4", "-o", "a.npy"]);
    bench.well(&["det", "a.npy", "-o", "d.npy", "--sign", "s.npy", "--log", "l.npy", "--outcomes", "o.npy"]);
    bench.well(&["factorize", "a.npy", "-o", "lu.npy", "-p", "p.npy"]);
    for (command, result) in [
        (&["det", "a.npy", "-o", "-"][..], "d.npy"),
        (&["det", "a.npy", "--sign", "-"], "s.npy"),
        (&["det", "a.npy", "-o", "x.npy", "--log", "-"], "l.npy"),
        (&["factorize", "a.npy", "-o", "x.npy", "-p", "-"], "p.npy"),
        (&["factorize", "a.npy", "-o", "-", "-p", "x.npy"], "lu.npy"),
        (&["verify", "a.npy", "lu.npy", "--pivots", "p.npy", "--outcomes", "-"], "o.npy"),
    ] {
        for words in [&[][..], &["--json"]] {
            let output = bench.batchla(&[command, words].concat());
            let told = String::from_utf8(output.stderr).unwrap();
            assert!(output.stdout == bench.bytes(result), "{command:?}: {told}");
            assert!(told.contains("a.npy") && told.contains("standard output"), "{told}");
        }
    }
}

#[test]
fn what_would_take_more_than_any_memory_is_told_and_nothing_takes_none() {
    let bench = Bench::new();
    bench.well(&["generate", "uniform", "--batch", "0", "--order", "10000", "-o", "a.npy"]);
    bench.well(&["invert", "a.npy", "-o", "x.npy"]);
    let dictionary = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1000000000, 1000000000), }";
    let front = [b"\x93NUMPY\x01\x00", &(dictionary.len() as u16).to_le_bytes()[..], dictionary.as_bytes()].concat();
    let output = bench.fed(&["invert", "-", "-o", "y.npy"], &front);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("matrices at a time"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_an_error_of_one_line() {
    let bench = Bench::new();
    large(&bench);
    let output = bench.shell("BATCHLA invert a.npy -o - | head -c 1000 > /dev/null; cat /dev/null");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("batchla: write: standard output cannot be written"), "{told}");
}

#[test]
fn several_inputs_and_patterns_go_to_a_folder() {
    let bench = Bench::new();
    for (name, order) in [("a1.npy", "3"), ("a2.npy", "5"), ("b.npy", "4")] {
        bench.well(&["generate", "uniform", "--batch", "7", "--order", order, "-o", name]);
    }
    let text = bench.error(&["invert", "a1.npy", "b.npy", "-o", "x"], &["a1.npy", "a2.npy", "b.npy"]);
    assert!(text.contains("x is no folder"), "{text}");
    fs::create_dir(bench.path("x")).unwrap();
    let told = bench.well(&["invert", "a*.npy", "b.npy", "-o", "x", "--outcomes", "x", "--json"]);
    let inputs: Vec<serde_json::Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        inputs.iter().map(|summary| summary["input"].as_str().unwrap()).collect::<Vec<_>>(),
        ["a1.npy", "a2.npy", "b.npy"]
    );
    for (name, n) in [("a1", 3), ("a2", 5), ("b", 4)] {
        assert_eq!(npy::peek(bench.path(&format!("x/{name}.npy"))).unwrap().shape, [7, n, n]);
        let info = IntegerReader::open(bench.path(&format!("x/{name}-outcomes.npy"))).unwrap().next(9).unwrap();
        assert_eq!(info, [0; 7]);
    }
    for folder in ["x", "x/"] {
        bench.well(&["invert", "a*.npy", "-o", folder]);
        // A folder is one with one input too.
        fs::remove_file(bench.path("x/b.npy")).unwrap();
        bench.well(&["invert", "b.npy", "-o", folder]);
        assert_eq!(npy::peek(bench.path("x/b.npy")).unwrap().shape, [7, 4, 4]);
    }
    let text = bench.error(&["invert", "c*.npy", "-o", "x"], &["a1.npy", "a2.npy", "b.npy", "x"]);
    assert!(text.contains("c*.npy fits no file"), "{text}");
    let text = bench.error(&["invert", "a1.npy", "b.npy", "-o", "."], &["a1.npy", "a2.npy", "b.npy", "x"]);
    assert!(text.contains("is the input"), "{text}");
    // Nothing that one of them writes is written over by the next.
    let text = bench.error(&["invert", "b.npy", "x/b.npy", "-o", "x"], &["a1.npy", "a2.npy", "b.npy", "x"]);
    assert!(text.contains("the results of b.npy and x/b.npy would both be called b"), "{text}");
}

#[test]
fn outcomes_are_written_as_info_and_in_words() {
    let bench = Bench::new();
    bench.well(&["generate", "planted:nan", "--batch", "4", "--order", "3", "-o", "a.npy"]);
    for name in ["o.npy", "o.csv"] {
        bench.batchla(&["invert", "a.npy", "-o", "x.npy", "--outcomes", name]);
    }
    assert_eq!(IntegerReader::open(bench.path("o.npy")).unwrap().next(9).unwrap(), [0, -1, 0, 0]);
    let words = "matrix,outcome,column\n0,regular,\n1,not finite,\n2,regular,\n3,regular,\n";
    assert_eq!(fs::read_to_string(bench.path("o.csv")).unwrap(), words);
    let names = ["a.npy", "o.csv", "o.npy", "x.npy"];
    assert!(
        bench
            .error(&["invert", "a.npy", "-o", "y.npy", "--outcomes", "y.npy"], &names)
            .contains("two results go to y.npy")
    );
    assert!(bench.error(&["invert", "a.npy", "-o", "y.npy", "--outcomes", "a.npy"], &names).contains("is the input"));
}

#[test]
fn arrays_of_archives_are_read_stored_and_compressed() {
    let bench = Bench::new();
    let script = "
a, f = np.random.rand(100, 5, 5), np.asfortranarray(np.random.rand(100, 5, 5))
np.savez('stored.npz', a=a, f=f)
np.savez_compressed('packed.npz', a=a, f=f)
np.savez('one.npz', a)
np.save('a.npy', a)
np.save('f.npy', f)
np.savez('a_folder.npz', **{'in/a': a})
open('CAPITAL.NPZ', 'wb').write(open('stored.npz', 'rb').read())
np.savez('empty.npz')
broken = bytearray(open('stored.npz', 'rb').read())
broken[2000] ^= 1
open('bent.npz', 'wb').write(broken)
broken = bytearray(open('packed.npz', 'rb').read())
broken[2000] ^= 1
open('broken.npz', 'wb').write(broken)
open('cut.npz', 'wb').write(broken[:3000])
";
    if !numpy(script, bench.folder()) {
        return;
    }
    for name in ["a", "f"] {
        bench.well(&["invert", &format!("{name}.npy"), "-o", "x.npy"]);
        for archive in ["stored", "packed"] {
            bench.well(&["invert", &format!("{archive}.npz:{name}"), "-o", "y.npy"]);
            assert!(bench.bytes("x.npy") == bench.bytes("y.npy"), "{archive} {name}");
        }
    }
    bench.well(&["invert", "one.npz", "-o", "y.npy"]);
    bench.well(&["invert", "CAPITAL.NPZ:a", "-o", "y.npy"]);
    bench.well(&["invert", "a_folder.npz:in/a", "-o", "./"]);
    assert_eq!(read::<f64>(bench.path("a_folder-in-a.npy")).unwrap().batch(), 100);
    for (input, told) in [
        ("stored.npz", "holds 2 arrays: a, f"),
        ("stored.npz:b", "stored.npz:b is not there; the arrays are: a, f"),
        ("cut.npz:a", "cut.npz is not a whole .npz archive"),
        ("broken.npz:a", "cannot be read"),
        ("bent.npz:a", "its checksum does not agree"),
        ("empty.npz", "empty.npz holds no arrays; save some"),
    ] {
        let output = bench.batchla(&["invert", input, "-o", "z.npy"]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && text.contains(told), "{input}: {text}");
    }
    assert!(!bench.path("z.npy").exists());
    fs::rename(bench.path("one.npz"), bench.path("one.npy")).unwrap();
    let output = bench.batchla(&["invert", "one.npy", "-o", "z.npy"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("name it .npz"));
}
