//! What a program may ask a running link, one JSON object a line: `{"weir":1,"do":"status"}`.
//! docs/control.md describes all of it.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use weir_policy::instead;
use weir_units::{Span, limits};

use crate::Refused;

/// The version that is spoken.
pub const VERSION: u64 = 1;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Request {
    /// How the link is.
    Status,
    /// What each class got; `all` also those that got nothing.
    Tree {
        /// Also silent classes.
        all: bool,
        /// Only the class with this path and what is below it; empty: the link.
        #[serde(skip_serializing_if = "String::is_empty")]
        path: String,
        /// Only classes with this in their path; empty: all.
        #[serde(skip_serializing_if = "String::is_empty")]
        filter: String,
    },
    /// The raw counters.
    Books,
    /// Another policy.
    Apply(Box<Apply>),
    /// What waits for its confirmation stays.
    Confirm,
    /// Back to an earlier policy.
    Rollback {
        /// Its number; without it, the one before.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<u64>,
        /// Why.
        comment: String,
    },
    /// All revisions that are kept.
    History,
    /// Stop shaping, or shape again.
    Observe {
        /// Whether to stop.
        on: bool,
    },
    /// The text that Prometheus reads.
    Metrics,
    /// End the link.
    Stop,
}

/// A policy that is brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Apply {
    /// What messages call it.
    pub name: String,
    /// All of it.
    pub text: String,
    /// The table of subscribers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribers: Option<String>,
    /// Why, for the history.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// How long it may wait for its confirmation.
    #[serde(rename = "confirm_s", serialize_with = "seconds")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Span>,
    /// Only say what it would change.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry: bool,
    /// Take it although rows of the table are skipped.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_skipped: bool,
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn seconds<S: Serializer>(span: &Option<Span>, serializer: S) -> Result<S::Ok, S::Error> {
    span.map(|span| span.ns() / 1_000_000_000).serialize(serializer)
}

/// A request as a line.
#[derive(Serialize)]
struct Line<'r> {
    weir: u64,
    #[serde(flatten)]
    request: &'r Request,
}

const REQUESTS: [&str; 10] = [
    "status", "tree", "books", "apply", "confirm", "rollback", "history", "observe", "metrics",
    "stop",
];

/// Characters of a comment or a name.
const LINE: usize = 1_000;

impl Request {
    /// The tree of the whole link.
    #[must_use]
    pub fn tree(all: bool) -> Request {
        Request::Tree { all, path: String::new(), filter: String::new() }
    }

    /// Reads one line.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and its cure.
    pub fn read(line: &[u8]) -> Result<Request, Refused> {
        let example = "a request is one line such as {\"weir\":1,\"do\":\"status\"}";
        let value: Value = serde_json::from_slice(line)
            .map_err(|why| Refused::call(format!("this is not JSON: {why}"), example))?;
        let Value::Object(object) = value else {
            return Err(Refused::call("this is not a JSON object", example));
        };
        let mut words = Words { object, known: vec!["weir", "do"] };
        match words.object.shift_remove("weir").as_ref().map(Value::as_u64) {
            Some(Some(VERSION)) => {}
            None => return Err(Refused::call("\"weir\" is missing", example)),
            Some(_) => {
                let what = "this version of the protocol is not known here";
                return Err(Refused::call(what, "\"weir\": 1 is"));
            }
        }
        let Some(asked) = words.text("do")? else {
            return Err(Refused::call("\"do\" is missing", example));
        };
        let request = match asked.as_str() {
            "status" => Request::Status,
            "tree" => Request::Tree {
                all: words.flag("all")?.unwrap_or(false),
                path: words.text("path")?.unwrap_or_default(),
                filter: words.text("filter")?.unwrap_or_default(),
            },
            "books" => Request::Books,
            "apply" => Request::Apply(Box::new(Apply::read(&mut words)?)),
            "confirm" => Request::Confirm,
            "rollback" => Request::Rollback {
                to: words.number("to")?,
                comment: words.line("comment")?.unwrap_or_default(),
            },
            "history" => Request::History,
            "observe" => {
                let on = words.flag("on")?;
                let missing = || Refused::call("\"on\" is missing", "true observes, false shapes");
                Request::Observe { on: on.ok_or_else(missing)? }
            }
            "metrics" => Request::Metrics,
            "stop" => Request::Stop,
            other => {
                let what = format!("there is no request \"{}\"", short(other));
                return Err(Refused::call(what, instead(short(other), REQUESTS)));
            }
        };
        words.end(&asked)?;
        Ok(request)
    }

    /// As one line.
    #[must_use]
    pub fn line(&self) -> String {
        let line = serde_json::to_string(&Line { weir: VERSION, request: self });
        // words and numbers always are JSON
        line.unwrap_or_default() + "\n"
    }
}

impl Apply {
    fn read(words: &mut Words) -> Result<Apply, Refused> {
        let text = words.text("text")?;
        let missing = || Refused::call("\"text\" is missing", "it is the whole policy");
        Ok(Apply {
            text: text.ok_or_else(missing)?,
            name: words.line("name")?.unwrap_or_else(|| "policy".to_owned()),
            subscribers: words.text("subscribers")?,
            comment: words.line("comment")?.unwrap_or_default(),
            confirm: words.confirm()?,
            dry: words.flag("dry")?.unwrap_or(false),
            allow_skipped: words.flag("allow_skipped")?.unwrap_or(false),
        })
    }
}

/// The words of a request that are not read yet, and those that it could have.
struct Words {
    object: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Words {
    fn text(&mut self, word: &'static str) -> Result<Option<String>, Refused> {
        match self.take(word) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(word, "text in quotes")),
        }
    }

    fn flag(&mut self, word: &'static str) -> Result<Option<bool>, Refused> {
        match self.take(word) {
            None => Ok(None),
            Some(Value::Bool(on)) => Ok(Some(on)),
            Some(_) => Err(wrong(word, "true or false")),
        }
    }

    fn number(&mut self, word: &'static str) -> Result<Option<u64>, Refused> {
        match self.take(word).map(|value| value.as_u64()) {
            None => Ok(None),
            Some(Some(number)) => Ok(Some(number)),
            Some(None) => Err(wrong(word, "a whole number")),
        }
    }

    /// Text that is printed within a line.
    fn line(&mut self, word: &'static str) -> Result<Option<String>, Refused> {
        let Some(text) = self.text(word)? else { return Ok(None) };
        if text.chars().count() > LINE {
            return Err(wrong(word, &format!("{LINE} characters at most")));
        }
        Ok(Some(text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()))
    }

    fn confirm(&mut self) -> Result<Option<Span>, Refused> {
        match self.number("confirm_s")? {
            Some(seconds) if !(1..=limits::CONFIRM_SECS).contains(&seconds) => {
                let expected = format!("from 1 to {} seconds", limits::CONFIRM_SECS);
                Err(wrong("confirm_s", &expected))
            }
            seconds => Ok(seconds.map(Span::from_secs)),
        }
    }

    fn take(&mut self, word: &'static str) -> Option<Value> {
        self.known.push(word);
        self.object.shift_remove(word)
    }

    /// Everything has been read: what is left is nothing that is known.
    fn end(self, asked: &str) -> Result<(), Refused> {
        match self.object.keys().next() {
            None => Ok(()),
            Some(word) => {
                let what = format!("\"{asked}\" has no word \"{}\"", short(word));
                Err(Refused::call(what, instead(short(word), self.known)))
            }
        }
    }
}

fn wrong(word: &str, expected: &str) -> Refused {
    Refused::call(format!("\"{word}\" is {expected}"), "")
}

/// Enough of a word to know it again.
fn short(word: &str) -> &str {
    word.char_indices().nth(40).map_or(word, |(at, _)| &word[..at])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(line: &str) -> Result<Request, String> {
        Request::read(line.as_bytes()).map_err(|refused| refused.to_string())
    }

    #[test]
    fn every_request_is_read_as_it_is_written() {
        let apply = Apply {
            name: "p.toml".into(),
            text: "[link.l]\n\"\u{e4}\" = 1".into(),
            subscribers: Some("id,name\n".into()),
            comment: "why".into(),
            confirm: Some(Span::from_secs(60)),
            dry: true,
            allow_skipped: true,
        };
        let plain = Apply {
            subscribers: None,
            comment: String::new(),
            confirm: None,
            allow_skipped: false,
            ..apply.clone()
        };
        for request in [
            Request::Status,
            Request::tree(true),
            Request::Tree { all: false, path: "/net".into(), filter: "C10".into() },
            Request::Books,
            Request::Apply(Box::new(apply)),
            Request::Apply(Box::new(plain)),
            Request::Confirm,
            Request::Rollback { to: None, comment: String::new() },
            Request::Rollback { to: Some(3), comment: "x".into() },
            Request::History,
            Request::Observe { on: false },
            Request::Metrics,
            Request::Stop,
        ] {
            let line = request.line();
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert_eq!(read(&line), Ok(request));
        }
    }

    #[test]
    fn a_request_is_written_as_ever() {
        let apply = Apply {
            name: "p".into(),
            text: "t".into(),
            subscribers: None,
            comment: String::new(),
            confirm: Some(Span::from_secs(60)),
            dry: true,
            allow_skipped: false,
        };
        for (request, line) in [
            (Request::Status, r#"{"weir":1,"do":"status"}"#),
            (Request::tree(false), r#"{"weir":1,"do":"tree","all":false}"#),
            (
                Request::Rollback { to: None, comment: "x".into() },
                r#"{"weir":1,"do":"rollback","comment":"x"}"#,
            ),
            (
                Request::Apply(Box::new(apply)),
                r#"{"weir":1,"do":"apply","name":"p","text":"t","confirm_s":60,"dry":true}"#,
            ),
        ] {
            assert_eq!(request.line(), format!("{line}\n"));
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_cure() {
        for (line, said) in [
            ("{", "this is not JSON: EOF"),
            ("[]", "not a JSON object: a request is one line such as"),
            ("{\"do\":\"status\"}", "\"weir\" is missing"),
            ("{\"weir\":2,\"do\":\"status\"}", "version of the protocol is not known"),
            ("{\"weir\":1}", "\"do\" is missing"),
            ("{\"weir\":1,\"do\":\"statsu\"}", "did you mean \"status\"?"),
            ("{\"weir\":1,\"do\":7}", "\"do\" is text in quotes"),
            (
                "{\"weir\":1,\"do\":\"tree\",\"al\":1}",
                "\"tree\" has no word \"al\": did you mean \"all\"?",
            ),
            ("{\"weir\":1,\"do\":\"tree\",\"all\":1}", "\"all\" is true or false"),
            ("{\"weir\":1,\"do\":\"apply\"}", "\"text\" is missing"),
            ("{\"weir\":1,\"do\":\"apply\",\"text\":\"\",\"confirm_s\":0}", "from 1 to 86400 s"),
            ("{\"weir\":1,\"do\":\"rollback\",\"to\":-1}", "\"to\" is a whole number"),
            ("{\"weir\":1,\"do\":\"observe\"}", "true observes, false shapes"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
        let deep = "[".repeat(1 << 20);
        assert!(read(&deep).unwrap_err().contains("recursion limit"));
        let long = format!("{{\"weir\":1,\"do\":\"{}\"}}", "\u{e4}".repeat(1 << 16));
        assert!(read(&long).unwrap_err().len() < 400);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(line in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Request::read(&line);
        }

        #[test]
        fn no_words_make_it_panic(
            asked in prop::sample::select(REQUESTS.to_vec()),
            words in prop::collection::vec(
                (prop::sample::select(vec![
                    "all", "text", "name", "subscribers", "comment", "confirm_s", "dry", "to",
                    "allow_skipped",
                    "on", "x",
                ]), prop::sample::select(vec![
                    "1", "-1", "1e300", "18446744073709551615", "true", "null", "\"\\u0000\"", "[]",
                    "{\"a\":{}}", "\"\u{1f600}\"",
                ])), 0..6),
        ) {
            let words: String = words.iter().map(|(w, v)| format!(",\"{w}\":{v}")).collect();
            let line = format!("{{\"weir\":1,\"do\":\"{asked}\"{words}}}");
            if let Ok(request) = Request::read(line.as_bytes()) {
                prop_assert_eq!(Request::read(request.line().as_bytes()), Ok(request));
            }
        }
    }
}
