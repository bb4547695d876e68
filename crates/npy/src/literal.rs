//! The Python literal in a header: a dictionary of strings, truth values and tuples of integers.

/// A value of the dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// `'<f8'`, as it stands between its quotes.
    Text(&'a str),
    /// `True` or `False`.
    Truth(bool),
    /// `(46, 21, 21)`.
    Integers(Vec<u64>),
    /// Anything else that is well-formed enough to tell where it ends, for example the list of a structured type.
    Other(&'a str),
}

/// The pairs of `{'key': value, ...}`, or where and why the text is none.
pub(crate) fn dictionary(text: &str) -> Result<Vec<(&str, Value<'_>)>, String> {
    let mut scanner = Scanner { text, at: 0 };
    let mut pairs = Vec::new();
    scanner.expect('{')?;
    while !scanner.accept('}') {
        let key = scanner.string()?;
        scanner.expect(':')?;
        pairs.push((key, scanner.value()?));
        if !scanner.accept(',') {
            scanner.expect('}')?;
            break;
        }
    }
    scanner.end()?;
    Ok(pairs)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_ascii_start().len();
    }

    fn accept(&mut self, token: char) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        self.at += if found { token.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, token: char) -> Result<(), String> {
        if self.accept(token) { Ok(()) } else { Err(self.complain(&format!("{token:?}"))) }
    }

    fn end(&mut self) -> Result<(), String> {
        self.skip_space();
        if self.rest().is_empty() { Ok(()) } else { Err(self.complain("the end")) }
    }

    fn complain(&self, wanted: &str) -> String {
        let found = self.rest().chars().next().map_or("the end".to_owned(), |c| format!("{c:?}"));
        format!("{wanted} was expected at character {}, not {found}", self.text[..self.at].chars().count() + 1)
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = match () {
            () if self.accept('\'') => '\'',
            () if self.accept('"') => '"',
            () => return Err(self.complain("a string")),
        };
        let start = self.at;
        let mut characters = self.rest().char_indices();
        while let Some((i, c)) = characters.next() {
            if c == quote {
                self.at = start + i + c.len_utf8();
                return Ok(&self.text[start..start + i]);
            }
            if c == '\\' {
                characters.next();
            }
        }
        Err(format!("the string at character {} has no end", self.text[..start].chars().count()))
    }

    fn value(&mut self) -> Result<Value<'a>, String> {
        self.skip_space();
        let start = self.at;
        let simple = match self.rest().chars().next() {
            Some('\'' | '"') => Some(Value::Text(self.string()?)),
            Some('(') => self.integers().map(Value::Integers),
            Some('T' | 'F') => self.truth().map(Value::Truth),
            _ => None,
        };
        // A value is what it seemed to be only if nothing follows it: `'a' 'b'` and `(1,) + (2,)` are something else.
        self.skip_space();
        if let Some(value) = simple.filter(|_| self.rest().starts_with([',', '}'])) {
            return Ok(value);
        }
        self.at = start;
        self.skip_value()?;
        Ok(Value::Other(self.text[start..self.at].trim_ascii_end()))
    }

    fn truth(&mut self) -> Option<bool> {
        let (word, truth) = [("True", true), ("False", false)].into_iter().find(|(w, _)| self.rest().starts_with(w))?;
        self.at += word.len();
        Some(truth)
    }

    /// A tuple of integers; a sole one must have its comma, else Python sees a number in parentheses.
    fn integers(&mut self) -> Option<Vec<u64>> {
        let mut integers = Vec::new();
        self.accept('(');
        while !self.accept(')') {
            self.skip_space();
            let digits = self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
            integers.push(self.rest()[..digits].parse().ok()?);
            self.at += digits;
            self.accept('L'); // Python 2's long integers
            if !self.accept(',') {
                return (integers.len() > 1 && self.accept(')')).then_some(integers);
            }
        }
        Some(integers)
    }

    /// Steps over a value by counting brackets, up to the comma or brace behind it.
    fn skip_value(&mut self) -> Result<(), String> {
        let start = self.at;
        let mut depth = 0usize;
        loop {
            match self.rest().chars().next() {
                None => return Err(self.complain("the end of a value")),
                Some(',' | '}') if depth == 0 && self.at == start => return Err(self.complain("a value")),
                Some(',' | '}') if depth == 0 => return Ok(()),
                Some('\'' | '"') => {
                    self.string()?;
                }
                Some(c) => {
                    match c {
                        '(' | '[' | '{' => depth += 1,
                        ')' | ']' | '}' => depth = depth.checked_sub(1).ok_or_else(|| self.complain("a value"))?,
                        _ => {}
                    }
                    self.at += c.len_utf8();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_numpy_writes_is_understood() {
        let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (46, 21, 21), }    \n";
        assert_eq!(
            dictionary(text).unwrap(),
            [
                ("descr", Value::Text("<f8")),
                ("fortran_order", Value::Truth(false)),
                ("shape", Value::Integers(vec![46, 21, 21])),
            ]
        );
        let shapes = [("()", vec![]), ("(3,)", vec![3]), ("(3L, 4L)", vec![3, 4]), ("( 3 ,4, )", vec![3, 4])];
        for (shape, expected) in shapes {
            assert_eq!(dictionary(&format!("{{\"s\":{shape}}}")).unwrap(), [("s", Value::Integers(expected))]);
        }
    }

    #[test]
    fn other_values_are_stepped_over() {
        for other in [
            "[('a', '<f8'), ('b}', [('c', '|O')], (2, 3))]",
            "(-1, 3)",
            "(3)",
            "(18446744073709551616, 1)",
            "'<f8' '<f8'",
            "(1,) + (2,)",
            "Falsehood",
            "None",
        ] {
            assert_eq!(dictionary(&format!("{{'x': {other} , }}")).unwrap(), [("x", Value::Other(other))]);
        }
    }

    #[test]
    fn text_that_is_no_dictionary_is_refused() {
        for text in [
            "",
            "{",
            "{'a'",
            "{'a':",
            "{'a': ",
            "{'a': }",
            "{'a': 'b",
            "{'a': (1",
            "{'a': )}",
            "{'a': 1} 2",
            "{a: 1}",
            "[]",
        ] {
            assert!(dictionary(text).is_err(), "{text}");
        }
        assert_eq!(dictionary("{'ä': 1 ").unwrap_err(), "the end of a value was expected at character 9, not the end");
    }

    #[test]
    fn deep_nesting_is_no_trouble() {
        let depth = if cfg!(miri) { 300 } else { 30_000 };
        let deep = format!("{{'x': {}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(matches!(dictionary(&deep).unwrap()[..], [("x", Value::Other(_))]));
        assert!(dictionary(&"{".repeat(2 * depth)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[{}()\\[\\]'\",:\\\\ a-c0-9TrueFalsL\u{e4}]{0,60}") {
            let _ = dictionary(&text);
            let _ = dictionary(&format!("{{'a': {text}"));
        }
    }
}
