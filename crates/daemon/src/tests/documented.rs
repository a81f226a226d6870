//! The examples of docs/control.md.

use super::*;

/// What docs/control.md says is asked and answered, is: a request in a block, its answer in the
/// next. `"..."` stands for anything, a number for any number.
#[test]
fn the_documented_answers_are_those() {
    let document = include_str!("../../../../docs/control.md");
    let blocks: Vec<&str> = document
        .split("```json\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .collect();
    let folder = Folder::new("documented");
    let policy = document.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    std::fs::write(folder.0.join("p.toml"), policy).unwrap();
    let mut world = World::of(folder, "office");
    let mut said: Option<Value> = None;
    for block in blocks {
        let value: Value =
            serde_json::from_str(block).unwrap_or_else(|why| panic!("{why}: {block}"));
        match said.take() {
            Some(answer) => alike(&value, &answer, "answer", &answer),
            None => {
                let asker = Asker { name: "anna", now: now(), of_day: 1_795_313_901 };
                let line = value.to_string();
                let answer = world.asked.answer_line(line.as_bytes(), asker);
                said = Some(serde_json::from_str(&answer).unwrap());
            }
        }
    }
    assert!(said.is_none());
    world.stop();
}

fn alike(shown: &Value, is: &Value, at: &str, whole: &Value) {
    let differ = || panic!("{at}: {shown} is shown, {is} is said, in {whole:#}");
    match (shown, is) {
        (Value::String(any), _) if any == "..." => {}
        (Value::Object(shown), Value::Object(is)) => {
            if !shown.keys().eq(is.keys()) {
                differ();
            }
            shown.iter().for_each(|(key, v)| alike(v, &is[key], &format!("{at}.{key}"), whole));
        }
        (Value::Array(shown), Value::Array(is)) => {
            let more = shown.last() == Some(&json!("..."));
            let shown = &shown[..shown.len() - usize::from(more)];
            if shown.len() > is.len() || (!more && shown.len() < is.len()) {
                differ();
            }
            shown.iter().zip(is).for_each(|(shown, is)| alike(shown, is, at, whole));
        }
        (Value::Number(_), Value::Number(_)) => {}
        (shown, is) if shown == is => {}
        _ => differ(),
    }
}
