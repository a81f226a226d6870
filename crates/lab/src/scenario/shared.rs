//! A policy that many profiles share: `[policy]` holds its text, in which `<word>` stands for what
//! differs; a profile names the system whose words come in (`system`), and says the rest itself
//! (`put`).

use weir_policy::Problems;
use weir_policy::reader::{Entry, Table};

use crate::library;

/// A policy with everything put in.
pub(super) struct Filled<'t> {
    pub(super) text: String,
    /// What the system is, in a sentence.
    pub(super) about: Option<&'static str>,
    /// Where the profile says it.
    pub(super) entry: Entry<'t>,
}

/// The text of `[policy]`, and what stands for its words where a profile does not say it.
pub(super) struct Shared<'t> {
    text: &'t str,
    usual: Vec<(&'t str, &'t str)>,
}

pub(super) fn read<'t>(entry: Entry<'t>, problems: &mut Problems) -> Option<Shared<'t>> {
    let mut table = entry.table("[policy]", problems)?;
    let text = table.take("text");
    let usual = table.take("usual").and_then(|entry| entry.table("\"usual\"", problems));
    let words = usual.map_or_else(Vec::new, |usual| usual.all().collect());
    let usual = words.into_iter();
    let usual = usual.filter_map(|(word, e)| Some((word, e.text(word, "a string", problems)?)));
    let usual = usual.collect();
    table.finish(&["text", "usual"], problems);
    let Some(text) = text else {
        let help = "write text = \"\"\"...\"\"\" with <word> for what a profile puts in";
        problems.error(entry.place, "[policy] has no \"text\"", help);
        return None;
    };
    Some(Shared { text: text.text("text", "a policy", problems)?, usual })
}

/// The shared policy as this profile has it, if it asks for it.
pub(super) fn filled<'t>(
    table: &mut Table<'t>,
    shared: Option<&Shared<'_>>,
    problems: &mut Problems,
) -> Option<Filled<'t>> {
    let (system, put) = (table.take("system"), table.take("put"));
    let entry = system.or(put)?;
    let Some(shared) = shared else {
        let help = "add [policy] and text = \"\"\"...\"\"\", or write the profile's own \"policy\"";
        problems.error(entry.key, "there is no policy to put this into", help);
        return None;
    };
    let system = system.and_then(|entry| {
        let name = entry.text("system", "the name of a system", problems)?;
        let found = library::SYSTEMS.iter().find(|system| system.name == name);
        if found.is_none() {
            let known: Vec<&str> = library::SYSTEMS.iter().map(|system| system.name).collect();
            let help = format!("there are {}", known.join(", "));
            problems.error(entry.place, format!("there is no system \"{name}\""), help);
        }
        found
    });
    let mut text = shared.text.to_owned();
    if let Some(puts) = put.and_then(|entry| entry.table("\"put\"", problems)) {
        for (word, entry) in puts.all() {
            let mark = format!("<{word}>");
            if !text.contains(&mark) {
                let help = format!("write {mark} where it shall stand");
                problems.error(entry.key, format!("the policy has no {mark}"), help);
            }
            if let Some(value) = entry.text(word, "a string", problems) {
                text = text.replace(&mark, value);
            }
        }
    }
    for (word, value) in &shared.usual {
        text = text.replace(&format!("<{word}>"), value);
    }
    text = text.replace("<words>", system.map_or("", |system| system.words()));
    Some(Filled { text, about: system.map(library::System::about), entry })
}
