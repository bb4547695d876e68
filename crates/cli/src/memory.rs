//! Bytes in words, and how many of them the program took.

/// Bytes from text: `1GB`, `32MB`, `500kB`, `1.5GB`, `4096`; the powers are of ten.
pub(crate) fn parse(text: &str) -> Result<usize, String> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        _ => return Err(format!("{unit:?} is no unit: there are B, kB, MB, GB and TB, of powers of ten")),
    };
    let bytes = number.parse::<f64>().map_err(|_| "not a number of bytes, as 500MB or 2GB".to_owned())? * scale;
    if (1.0..1e18).contains(&bytes) {
        Ok(bytes.round() as usize)
    } else {
        Err("not a number of bytes above zero".to_owned())
    }
}

/// Bytes in words.
pub(crate) fn bytes(count: f64) -> String {
    let (scale, unit) = unit(count);
    let digits = match scale {
        1.0 => 0,
        _ if count < 10.0 * scale => 2,
        _ => 1,
    };
    format!("{:.digits$} {unit}", count / scale)
}

/// Bytes in words that [`parse`] reads as no fewer.
pub(crate) fn at_least(count: usize) -> String {
    let (scale, unit) = unit(count as f64);
    format!("{}{unit}", (10.0 * count as f64 / scale).ceil() / 10.0)
}

/// The unit that suits so many bytes, and how many it has.
fn unit(count: f64) -> (f64, &'static str) {
    let steps = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    steps.into_iter().find(|(scale, _)| count >= *scale).unwrap_or((1.0, "B"))
}

/// The most memory that the process has had, as the system counts it; `None` where it does not tell.
pub(crate) fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_ten() {
        for (text, count) in
            [("1GB", 1_000_000_000), ("32 MB", 32_000_000), ("1.5k", 1500), ("7", 7), ("2tb", 2_000_000_000_000)]
        {
            assert_eq!(parse(text), Ok(count), "{text}");
        }
        for text in ["", "GB", "1GiB", "-1MB", "0", "1..5MB", "1e30TB", "nan"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_asked_for_is_enough_when_it_is_given() {
        for count in (1..2000).chain([320_001, 25_940_001, 25_900_000, 1_000_000_001, 4_321_987_654_321]) {
            let text = at_least(count);
            let enough = parse(&text).unwrap();
            assert!(count <= enough && enough <= count + count / 10, "{count}: {text}");
            assert!(!text.contains(' '), "{text}");
        }
    }

    #[test]
    fn bytes_in_words() {
        for (count, text) in [(12.0, "12 B"), (1500.0, "1.50 kB"), (32e6, "32.0 MB"), (1.25e9, "1.25 GB")] {
            assert_eq!(bytes(count), text);
        }
    }
}
