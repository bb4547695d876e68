//! What the documents promise of each other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// All documents below a folder, but for what is built and what is hidden.
fn documents(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            documents(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            all.push(path);
        }
    }
}

/// Where the links of a text lead, but for those into the web and, of what becomes a page of the library's, to its items.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.contains("://") && !target.starts_with("crate::"))
}

/// The anchor that a heading gets: its letters and digits in lower case, spaces as hyphens, nothing else.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Why a link leads nowhere, if it does.
fn broken(document: &Path, link: &str) -> Option<String> {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { document.to_owned() } else { document.parent().unwrap().join(path) };
    if !target.exists() {
        return Some(format!("{}: there is no {path}", document.display()));
    }
    let is_there = |text: String| {
        text.lines().any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == heading)
    };
    let found = heading.is_empty() || fs::read_to_string(&target).is_ok_and(is_there);
    (!found).then(|| format!("{}: {} has no heading #{heading}", document.display(), target.display()))
}

#[test]
fn every_link_of_a_document_leads_to_a_file_and_a_heading_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    documents(root, &mut all);
    assert!(all.contains(&root.join("benches/README.md")), "{all:?}");
    let mut lost = Vec::new();
    for document in &all {
        let text = fs::read_to_string(document).unwrap();
        lost.extend(links(&text).filter_map(|link| broken(document, link)));
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
fn a_link_to_a_file_or_a_heading_that_is_not_there_is_found() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/README.md");
    assert_eq!(broken(&readme, "#odd-orders"), None);
    assert_eq!(broken(&readme, "../README.md"), None);
    assert!(broken(&readme, "record/nowhere.csv").is_some_and(|why| why.ends_with("there is no record/nowhere.csv")));
    assert!(broken(&readme, "#even-orders").is_some_and(|why| why.contains("no heading #even-orders")));
}
