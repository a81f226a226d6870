//! The words of `police`: what can be said, and what is wrong with what was.

#[allow(dead_code)]
mod shared;

use shared::{LINK, plan, problems};

fn said(police: &str) -> Vec<String> {
    problems(&format!("{LINK}[class.\"/a\"]\nmatch = \"any\"\npolice = {{ {police} }}\n"), "")
}

#[test]
fn what_can_be_said() {
    for police in [
        "rate = \"1mbit\"",
        "rate = \"1mbit\", burst = \"15kb\", excess = \"drop\"",
        "rate = \"1mbit\", excess = 12, aware = true",
        "rate = \"1mbit\", peak = \"2mbit\", peak-burst = \"30kb\", excess = \"af12\"",
        "rate = \"1mbit\", peak-burst = \"1gib\", colours = [\"af11\", \"af12\", 14]",
    ] {
        assert_eq!(said(police), Vec::<String>::new(), "{police}");
    }
    let text = "[class.\"/a\"]\nmatch = \"any\"\n\
        police = { rate = \"1mbit\", peak = \"2mbit\", \
        colours = [\"af11\", 0, 14], aware = true }\n";
    let plan = plan(&format!("{LINK}{text}"), "");
    let words = weir_policy::say::leaf(plan.words_of(plan.find("/a").unwrap()));
    let want = "rate 1mbit, peak 2mbit, colours af11 be af13, aware true";
    assert_eq!(words, [("police", want.to_owned())]);
}

#[test]
fn what_is_wrong_is_said() {
    for (police, part) in [
        ("burst = \"15kb\"", "error: \"police\" has no \"rate\""),
        ("rate = \"2mbit\", peak = \"1mbit\", excess = 12", "error: \"peak\" is below \"rate\""),
        ("rate = \"1mbit\", burst = \"2gb\"", "error: \"burst\" 2gb is too large"),
        ("rate = \"1mbit\", burst = \"1kb\"", "warning: \"burst\" 1kb is less than a full frame"),
        ("rate = \"1mbit\", peak = \"2mbit\"", "warning: all frames above \"rate\" are dropped"),
        ("rate = \"1mbit\", colours = [10, 12, 14]", "error: three \"colours\" need a second"),
        (
            "rate = \"1mbit\", peak = \"2mbit\", colours = [10, 12]",
            "error: \"colours\" is not three code points",
        ),
        (
            "rate = \"1mbit\", peak = \"2mbit\", colours = [10, \"af1\", 14]",
            "error: \"colours\" cannot be \"af1\"",
        ),
        (
            "rate = \"1mbit\", peak = \"2mbit\", excess = 12, colours = [10, 12, 14]",
            "error: \"police\" has both",
        ),
    ] {
        let said = said(police);
        assert!(said.len() == 1 && said[0].contains(part), "{police}: {said:#?}");
    }
}

#[test]
fn a_class_with_children_polices_nothing_and_says_so() {
    let text = "[class.\"/a\"]\nmatch = \"any\"\npolice = { rate = \"1mbit\" }\n\
        [class.\"/a/b\"]\nmatch = \"tcp\"\n";
    let said = problems(&format!("{LINK}{text}"), "");
    assert!(said.len() == 1 && said[0].contains("\"police\" has no effect"), "{said:#?}");
}
