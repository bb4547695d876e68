//! The kernels' text, changed in one place.

use std::collections::BTreeMap;

use super::trials::TRIALS;

/// A changed place.
#[derive(Clone, Debug)]
pub(super) struct Mutant {
    pub(super) file: &'static str,
    pub(super) line: usize,
    pub(super) was: String,
    pub(super) now: String,
    pub(super) text: &'static str,
    pub(super) changed: String,
}

/// Every file of the kernels' text.
pub(super) fn files() -> Result<BTreeMap<&'static str, &'static str>, batchla::Error> {
    let mut files = BTreeMap::new();
    for (gpu, trial) in TRIALS {
        for specification in trial.kernels(&gpu.emulated().limits()?)? {
            let source = specification.source();
            files.insert(source.name, source.text);
            files.extend(source.headers.iter().copied());
        }
    }
    Ok(files)
}

/// What one line may become: without its barrier or its wait, with a comparison flipped, with a loop one shorter.
fn changes(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    let mut all = Vec::new();
    if code.trim_start().starts_with('#') || code.contains("static_assert") || code.contains("template") {
        return all;
    }
    for barrier in
        ["team_sync();", "__syncthreads();", "__syncwarp();", "Lanes::sync();", "Warp::sync();", "crew_sync();"]
    {
        if code.contains(barrier) {
            all.push(line.replacen(barrier, ";", 1));
        }
    }
    if let Some((before, wait)) = code.split_once("wait_copies<")
        && let Some((_, after)) = wait.split_once(">();")
    {
        all.push(format!("{before};{after}"));
    }
    let flips = [("<", "<="), ("<=", "<"), (">", ">="), (">=", ">"), ("==", "!="), ("!=", "==")];
    for (from, to) in flips {
        let from = format!(" {from} ");
        for (at, _) in code.match_indices(&from) {
            all.push(format!("{} {to} {}", &line[..at], &line[at + from.len()..]));
        }
    }
    if code.contains("for (") {
        all.extend(code.match_indices(" < ").map(|(at, _)| format!("{} + 1{}", &line[..at], &line[at..])));
    }
    all
}

/// Of each line whether it is for GPUs alone: what the emulator compiles is the twin after `#else`.
fn for_gpus(text: &str) -> Vec<bool> {
    let mut open = Vec::new();
    let lines = text.lines().map(|line| {
        let directive = line.trim_start();
        if directive.starts_with("#if") {
            open.push(directive.starts_with("#if PTX_ARCH >"));
        } else if directive.starts_with("#else") {
            if let Some(last) = open.last_mut() {
                *last = false;
            }
        } else if directive.starts_with("#endif") {
            open.pop();
        }
        open.contains(&true)
    });
    lines.collect()
}

/// All of them, file by file and line by line.
pub(super) fn mutants() -> Result<Vec<Mutant>, batchla::Error> {
    let mut all = Vec::new();
    for (file, text) in files()? {
        for ((number, line), _) in text.lines().enumerate().zip(for_gpus(text)).filter(|(_, for_gpus)| !for_gpus) {
            // Lines that are the same are told apart by their number among them.
            let same = |other: &&str| other.trim() == line.trim();
            let which = match (text.lines().filter(same).count(), text.lines().take(number + 1).filter(same).count()) {
                (1, _) => String::new(),
                (all, which) => format!("  // {which} of {all}"),
            };
            for now in changes(line) {
                let lines = text.lines().enumerate().map(|(at, line)| if at == number { &now } else { line });
                let changed = lines.map(|line| format!("{line}\n")).collect();
                let (was, now) = (line.trim().to_owned() + &which, now.trim().to_owned());
                all.push(Mutant { file, line: number + 1, was, now, text, changed });
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::{files, mutants};

    #[test]
    fn every_file_of_the_kernels_is_reached_by_a_run() {
        let files = files().unwrap();
        let mut kernels = std::fs::read_dir("../crates/cuda/src/kernels").unwrap();
        let missing = kernels.find(|file| !files.contains_key(file.as_ref().unwrap().file_name().to_str().unwrap()));
        assert!(missing.is_none(), "{missing:?}");
        assert!(!mutants().unwrap().is_empty());
    }
}
