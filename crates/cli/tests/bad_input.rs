//! Whatever is wrong, the error says it, the exit code tells, and no file is lost or half-written.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod program;

use std::fs;

use batchla::npy::read;

use crate::program::Bench;

/// A file of `batch` matrices of order 4, its header's dictionary replaced.
fn with_header(bench: &Bench, dictionary: &str, data: &[u8]) {
    let length = (dictionary.len() as u16).to_le_bytes();
    let bytes = [b"\x93NUMPY\x01\x00", &length[..], dictionary.as_bytes(), data].concat();
    fs::write(bench.path("a.npy"), bytes).unwrap();
}

/// Every command that reads matrices, on `a.npy`.
const COMMANDS: [&[&str]; 5] = [
    &["invert", "a.npy", "-o", "x.npy"],
    &["factorize", "a.npy", "-o", "x.npy", "-p", "p.npy"],
    &["solve", "a.npy", "b.npy", "-o", "x.npy"],
    &["det", "a.npy", "-o", "x.npy"],
    &["verify", "a.npy", "b.npy"],
];

fn refused_by_all(bench: &Bench, told: &str) {
    fs::write(bench.path("x.npy"), "precious").unwrap();
    for command in COMMANDS {
        let text = bench.error(command, &["a.npy", "b.npy", "x.npy"]);
        assert!(
            text.starts_with("batchla: ") && text.contains(told) && text.lines().count() <= 3,
            "{command:?}: {text}"
        );
        assert_eq!(bench.bytes("x.npy"), b"precious", "{command:?}");
    }
}

fn with_b() -> Bench {
    let bench = Bench::new();
    bench.well(&["generate", "uniform", "--batch", "6", "--order", "4", "-o", "b.npy"]);
    bench
}

#[test]
fn matrices_that_are_not_square() {
    let bench = with_b();
    bench.well(&["generate", "right-hand-sides", "--batch", "6", "--order", "4", "--columns", "3", "-o", "a.npy"]);
    refused_by_all(&bench, "4 x 3, not square");
}

#[test]
fn right_hand_sides_of_another_order_number_or_type() {
    let bench = with_b();
    let names = ["b.npy", "c.npy"];
    for (order, batch, scalar, told) in [
        ("5", "6", "f64", "matrices of order 4 (f64, shape (6, 4, 4), C order) and right-hand sides of 5 rows"),
        ("4", "7", "f64", "[6] matrices and [7] operands do not go together"),
        ("4", "6", "f32", "b.npy holds f64 numbers, and c.npy f32; give both one type"),
    ] {
        let kind = ["generate", "right-hand-sides", "-o", "c.npy"];
        bench.well(&[&kind[..], &["--order", order, "--batch", batch, "--scalar", scalar]].concat());
        let text = bench.error(&["solve", "b.npy", "c.npy", "-o", "x.npy"], &names);
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn a_header_that_overflows_or_promises_more_than_the_file_holds() {
    let bench = with_b();
    for (shape, told) in [
        ("(4294967296, 4294967296, 4294967296)", "overflows 64 bits"),
        ("(18446744073709551616, 2, 2)", "cannot be understood"),
        ("(1000000000000, 32, 32)", "ends early: it takes 8192000000000000 bytes behind the header, 64 are there"),
        ("(-1, 2, 2)", "cannot be understood"),
    ] {
        with_header(&bench, &format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"), &[0; 64]);
        refused_by_all(&bench, told);
    }
    // From a pipe, where nobody knows how much will come, memory grows with what came.
    with_header(&bench, "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 32, 32), }", &[0; 64]);
    let output = bench.fed(&["invert", "-", "-o", "y.npy"], &bench.bytes("a.npy"));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("ends early"));
    assert!(!bench.path("y.npy").exists());
}

#[test]
fn files_that_are_cut_or_go_on() {
    let bench = with_b();
    let whole = bench.bytes("b.npy");
    for (bytes, told) in [
        (&whole[..0], "is empty"),
        (&whole[..7], "is not a .npy file"),
        (&whole[..60], "ends within its header"),
        (&whole[..whole.len() - 8], "ends early"),
        (&[&whole[..], b"more"].concat(), "goes on behind the array"),
    ] {
        fs::write(bench.path("a.npy"), bytes).unwrap();
        refused_by_all(&bench, told);
        let output = bench.fed(&["invert", "-", "-o", "y.npy"], bytes);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && text.contains(told), "{text}");
        assert!(!bench.path("y.npy").exists());
    }
}

#[test]
fn elements_that_are_no_numbers_to_compute_with() {
    let bench = with_b();
    for descr in ["'|O'", "'<U3'", "'<i8'", "'|b1'", "'<f2'", "[('a', '<f8')]"] {
        with_header(&bench, &format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2, 2), }}"), &[0; 32]);
        refused_by_all(&bench, "holds elements of type");
    }
}

#[test]
fn versions_and_formats_that_are_not_known() {
    let bench = with_b();
    for (bytes, told) in [
        (&b"\x93NUMPY\x04\x00\x10\x00{}"[..], "format version 4.0"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", "a header of 4294967295 bytes"),
        (b"1.0 2.0\n3.0 4.0\n", "is not a .npy file"),
        (b"PK\x03\x04", "is not a .npy file, but an archive"),
    ] {
        fs::write(bench.path("a.npy"), bytes).unwrap();
        refused_by_all(&bench, told);
    }
    with_header(&bench, "{'descr': '<f8', 'fortran_order': False, 'shape': (7,), }", &[0; 56]);
    refused_by_all(&bench, "holds an array of shape (7,), not matrices");
}

#[test]
fn a_directory_for_a_file() {
    let bench = with_b();
    fs::create_dir(bench.path("a.npy")).unwrap();
    refused_by_all(&bench, "a.npy is a directory");
    // For a result it is a folder, with a file in it called after the input.
    bench.well(&["invert", "b.npy", "-o", "a.npy", "--outcomes", "a.npy"]);
    assert_eq!(bench.names(), ["a.npy", "b.npy", "x.npy"]);
    assert!(bench.path("a.npy/b.npy").is_file() && bench.path("a.npy/b-outcomes.npy").is_file());
}

#[test]
fn output_onto_input_under_any_name() {
    let bench = with_b();
    let whole = bench.bytes("b.npy");
    bench.well(&["generate", "uniform", "--batch", "6", "--order", "4", "-o", "a.npy"]);
    for command in [
        &["invert", "b.npy", "-o", "./b.npy"][..],
        &["factorize", "b.npy", "-o", "x.npy", "-p", "b.npy"],
        &["solve", "a.npy", "b.npy", "-o", "b.npy"],
        &["det", "b.npy", "-o", "x.npy", "--log", "b.npy"],
    ] {
        let text = bench.error(command, &["a.npy", "b.npy"]);
        assert!(text.contains("is the input") && bench.bytes("b.npy") == whole, "{text}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(bench.path("b.npy"), bench.path("link.npy")).unwrap();
        let text = bench.error(&["invert", "b.npy", "-o", "link.npy"], &["a.npy", "b.npy", "link.npy"]);
        assert!(text.contains("is the input"), "{text}");
    }
}

#[test]
fn no_result_replaces_an_input_or_another_result_of_any_job() {
    let bench = with_b();
    for folder in ["x", "d", "out", "m", "fa"] {
        fs::create_dir(bench.path(folder)).unwrap();
    }
    bench.well(&["factorize", "b.npy", "-o", "lu.npy", "-p", "p.npy"]);
    for copy in ["x/a.npy", "d/a-outcomes.npy", "m/a.npy", "m/a-pivots.npy"] {
        fs::copy(bench.path("b.npy"), bench.path(copy)).unwrap();
    }
    let (names, whole) = (["b.npy", "d", "fa", "lu.npy", "m", "out", "p.npy", "x"], bench.bytes("b.npy"));
    for (command, told) in [
        (&["factorize", "b.npy", "-o", "out/c.npy", "-p", "./out/c.npy"][..], "two results go to ./out/c.npy"),
        (&["factorize", "b.npy", "-o", "-", "-p", "-"], "two results go to standard output"),
        (&["verify", "b.npy", "lu.npy", "--pivots", "p.npy", "--outcomes", "./p.npy"], "./p.npy is the input p.npy"),
        (
            &["invert", "x/a.npy", "d/a-outcomes.npy", "-o", "out/", "--outcomes", "d/"],
            "d/a-outcomes.npy is the input d/a-outcomes.npy",
        ),
        (&["factorize", "m/*.npy", "-o", "fa/", "-p", "fa/"], "two results go to fa/a-pivots.npy"),
    ] {
        let text = bench.error(command, &names);
        assert!(text.contains(told), "{text}");
    }
    assert!(bench.bytes("d/a-outcomes.npy") == whole && bench.bytes("p.npy") != whole);
    for folder in ["out", "fa"] {
        assert_eq!(fs::read_dir(bench.path(folder)).unwrap().count(), 0, "{folder}");
    }
}

#[test]
fn an_input_that_is_refused_is_refused_before_there_is_a_result_of_another() {
    let bench = with_b();
    let whole = bench.bytes("b.npy");
    fs::write(bench.path("cut.npy"), &whole[..whole.len() - 8]).unwrap();
    fs::create_dir(bench.path("x")).unwrap();
    let text = bench.error(&["invert", "b.npy", "cut.npy", "-o", "x"], &["b.npy", "cut.npy", "x"]);
    assert!(text.contains("cut.npy ends early"), "{text}");
    assert_eq!(fs::read_dir(bench.path("x")).unwrap().count(), 0);
}

#[test]
fn a_plan_that_is_not_there_is_said_once() {
    let bench = with_b();
    let text = bench.error(&["invert", "b.npy", "-o", "x.npy", "--backend", "cpu", "--plan", "abacus"], &["b.npy"]);
    assert_eq!(text.matches("plan abacus was rejected").count(), 1, "{text}");
}

#[test]
fn matrices_that_no_memory_holds_are_refused_before_a_file_is_begun() {
    let bench = Bench::new();
    for order in ["10000000", "1000000000", "9000000000000000000"] {
        let text = bench.error(&["generate", "uniform", "--batch", "1", "--order", order, "-o", "a.npy"], &[]);
        assert!(text.starts_with("batchla: ") && text.contains("000000"), "{text}");
    }
    bench.well(&["generate", "uniform", "--batch", "0", "--order", "10000000", "-o", "a.npy"]);
}

#[cfg(unix)]
#[test]
fn files_and_folders_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let bench = with_b();
    let allow = |name: &str, mode| fs::set_permissions(bench.path(name), fs::Permissions::from_mode(mode)).unwrap();
    fs::copy(bench.path("b.npy"), bench.path("a.npy")).unwrap();
    allow("a.npy", 0);
    if fs::File::open(bench.path("a.npy")).is_ok() {
        eprintln!("SKIPPED: root may read and write everything");
        return;
    }
    refused_by_all(&bench, "a.npy cannot be opened; check its name and permissions");
    fs::create_dir(bench.path("closed")).unwrap();
    allow("closed", 0o500);
    let names = ["a.npy", "b.npy", "closed", "x.npy"];
    let text = bench.error(&["invert", "b.npy", "-o", "closed/x.npy"], &names);
    assert!(text.contains("closed/x.npy cannot be created"), "{text}");
    allow("closed", 0o700);
}

#[cfg(unix)]
#[test]
fn a_disk_that_is_full() {
    let bench = Bench::new();
    bench.well(&["generate", "uniform", "--batch", "2000", "--order", "16", "-o", "a.npy"]);
    fs::write(bench.path("x.npy"), "precious").unwrap();
    // The size of a file is limited to 100 kB: the signal is ignored by the shell, or left to the program.
    for ignored in ["trap '' XFSZ; ", ""] {
        for command in
            ["invert a.npy -o x.npy", "factorize a.npy -o x.npy -p p.npy", "generate uniform --batch 2000 -o x.npy"]
        {
            let output = bench.shell(&format!("{ignored}ulimit -f 100; BATCHLA {command}"));
            let text = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{command}: {text}");
            assert!(
                text.contains("x.npy cannot be written; check the room on its disk") && text.contains("because: "),
                "{text}"
            );
            assert_eq!(bench.names(), ["a.npy", "x.npy"], "{command}");
            assert_eq!(bench.bytes("x.npy"), b"precious");
        }
    }
    // The first file would fit, the second does not: neither takes its name.
    let output = bench.shell("ulimit -f 100; BATCHLA det a.npy -o d.npy --outcomes o.csv; ulimit -f 30; BATCHLA det a.npy -o e.npy --outcomes p.csv");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(bench.names(), ["a.npy", "d.npy", "o.csv", "x.npy"]);
}

/// Starts an inversion of which half has come, sends it a signal, and gives its exit code and what it said.
#[cfg(unix)]
fn interrupted(bench: &Bench, signal: &str) -> (Option<i32>, String) {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};
    let half = bench.bytes("a.npy");
    let mut command = bench.command(&["invert", "-", "-o", "x.npy", "--memory", "100kB"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&half[..half.len() / 2]).unwrap();
    stdin.flush().unwrap();
    // What came is worked on when more than a header is in the file under way.
    let under_way = || {
        bench.names().iter().any(|name| {
            name.starts_with(".batchla-") && fs::metadata(bench.path(name)).is_ok_and(|file| file.len() > 100_000)
        })
    };
    for _ in 0..6000 {
        if under_way() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(under_way(), "nothing was written");
    let kill = Command::new("sh").args(["-c", &format!("kill -s {signal} {}", child.id())]).status().unwrap();
    assert!(kill.success());
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    let code = child.wait().unwrap().code();
    drop(stdin);
    (code, told)
}

#[cfg(unix)]
#[test]
fn an_interrupt_half_way() {
    let bench = Bench::new();
    bench.well(&["generate", "uniform", "--batch", "2000", "--order", "16", "-o", "a.npy"]);
    fs::write(bench.path("x.npy"), "precious").unwrap();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let (ended, told) = interrupted(&bench, signal);
        assert_eq!(ended, Some(code), "{told}");
        assert!(
            told.contains("interrupted: invert standard input: ") && told.contains("of 2000 matrices were done"),
            "{told}"
        );
        assert_eq!(bench.names(), ["a.npy", "x.npy"]);
        assert_eq!(bench.bytes("x.npy"), b"precious");
    }
    // What cannot be caught leaves its file aside, and nothing half-written under the name that was asked for.
    let (ended, _) = interrupted(&bench, "KILL");
    assert_eq!((ended, bench.bytes("x.npy")), (None, b"precious".to_vec()));
}

#[test]
fn nan_everywhere_is_no_error_but_told() {
    let bench = with_b();
    let mut bytes = bench.bytes("b.npy");
    bytes[128..].copy_from_slice(&[f64::NAN.to_le_bytes(); 6 * 16].concat());
    fs::write(bench.path("a.npy"), bytes).unwrap();
    for command in &COMMANDS[..4] {
        let (code, summary) = bench.summary(command);
        assert_eq!((code, summary["not_finite"]["count"].as_u64()), (2, Some(6)), "{summary}");
        assert!(
            bench.bytes("x.npy")[128..].as_chunks().0.iter().all(|b| f64::from_le_bytes(*b).is_nan()),
            "{command:?}"
        );
    }
    let (code, summary) = bench.summary(&["invert", "a.npy", "-o", "x.npy", "--check"]);
    assert_eq!((code, summary["check"]["compared"].as_u64()), (2, Some(0)), "{summary}");
    assert!(read::<f64>(bench.path("x.npy")).unwrap().get(5, 3, 3).unwrap().is_nan());
}

#[test]
fn no_threads_or_too_many() {
    let bench = with_b();
    bench.well(&["generate", "uniform", "--batch", "6", "--order", "4", "-o", "a.npy"]);
    let also: [&[&str]; 2] = [&["generate", "uniform", "-o", "x.npy"], &["devices"]];
    for command in COMMANDS.into_iter().chain(also) {
        let text = bench.error(&[command, &["--threads", "0"]].concat(), &["a.npy", "b.npy"]);
        assert!(text.contains("0 threads compute nothing; ask for at least one"), "{text}");
        let text = bench.error(&[command, &["--threads", "99999999"]].concat(), &["a.npy", "b.npy"]);
        assert!(text.contains("99999999 threads are too many; ask for at most"), "{text}");
    }
}
