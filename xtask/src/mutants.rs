//! `cargo x mutants`: changes the code in one place, and sees whether a test notices. Whose change
//! no test notices is a survivor: either a test is missing, or the change makes no difference, and
//! then xtask/mutants.toml says why.
//!
//! All changes of the files it names are tried, and so many of the rest of the crates it names,
//! drawn from a seed. A verdict is written into xtask/mutants.txt at once, so that a run can be
//! stopped and goes on where it was.

mod draw;
mod plan;
mod switches;
mod together;
mod verdicts;
mod worker;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::{Done, shell};
use draw::Mutant;
use plan::Plan;
use together::Together;
use verdicts::{Verdict, Verdicts};
use worker::Worker;

struct Call {
    list: bool,
    anew: bool,
    /// Those once more that survived.
    survived: bool,
    jobs: usize,
    minutes: Option<u64>,
    /// Parts of names: only these files.
    files: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Done {
    let call = read(arguments)?;
    let plan = Plan::read()?;
    let mut mutants = plan.mutants()?;
    mutants.retain(|m| call.files.is_empty() || call.files.iter().any(|f| m.file.contains(f)));
    if call.list {
        mutants.iter().for_each(|mutant| println!("{}", mutant.name));
        println!("{} mutants", mutants.len());
        return Ok(true);
    }
    let mut verdicts = Verdicts::open()?;
    if call.anew || call.survived {
        let is_open = |m: &Mutant| {
            verdicts.of(m) == Some(Verdict::Survived) && !plan.argued.contains_key(&m.name)
        };
        let is_meant = |m: &&Mutant| call.anew || is_open(m);
        let forgotten: Vec<_> = mutants.iter().filter(is_meant).cloned().collect();
        verdicts.forget(&forgotten)?;
    }
    let waiting: Vec<_> = mutants.iter().filter(|m| verdicts.of(m).is_none()).cloned().collect();
    println!("{} mutants, {} without a verdict", mutants.len(), waiting.len());
    if !waiting.is_empty() {
        try_all(&call, &plan, &waiting, &mut verdicts)?;
    }
    Ok(report(&plan, &mutants, &verdicts))
}

fn read(arguments: &[String]) -> Result<Call, String> {
    let mut call =
        Call { list: false, anew: false, survived: false, jobs: 2, minutes: None, files: vec![] };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut number = |option: &str| {
            let value = words.next().and_then(|n| n.parse::<u64>().ok()).filter(|n| *n > 0);
            value.ok_or(format!("{option} takes a whole number above 0"))
        };
        match word.as_str() {
            "--list" => call.list = true,
            "--anew" => call.anew = true,
            "--survived" => call.survived = true,
            "--jobs" => call.jobs = usize::try_from(number("--jobs")?).unwrap_or(1),
            "--minutes" => call.minutes = Some(number("--minutes")?),
            option if option.starts_with('-') => {
                return Err(format!(
                    "no option \"{option}\": --list, --anew, --survived, --jobs, --minutes"
                ));
            }
            file => call.files.push(file.to_owned()),
        }
    }
    Ok(call)
}

/// First those that one build serves, then the rest one by one, until all are done or the time is
/// over.
fn try_all(
    call: &Call,
    plan: &Plan,
    waiting: &[Mutant],
    verdicts: &mut Verdicts,
) -> Result<(), String> {
    let end = call.minutes.map(|n| clock() + Duration::from_secs(60 * n));
    let numbered: Vec<_> = (1..).zip(waiting.iter().cloned()).collect();
    let together = Together::new(&numbered, plan, call.jobs)?;
    let (with, without) = numbered.into_iter().partition(|(number, _)| together.has(*number));
    let judges = vec![(); call.jobs];
    each(end, with, verdicts, &judges, |(), number, _| together.judge(number))?;
    let workers: Vec<_> = (0..call.jobs).map(Worker::new).collect::<Result<_, _>>()?;
    each(end, without, verdicts, &workers, |worker, _, mutant| worker.judge(mutant, plan))
}

/// Judges what waits, as many at a time as there are judges.
fn each<J: Sync>(
    end: Option<Instant>,
    waiting: VecDeque<(u32, Mutant)>,
    verdicts: &mut Verdicts,
    judges: &[J],
    judge: impl Fn(&J, u32, &Mutant) -> Result<Verdict, String> + Sync,
) -> Result<(), String> {
    let all = waiting.len();
    let waiting = Mutex::new(waiting);
    let next = || {
        let is_over = end.is_some_and(|end| clock() >= end);
        let mut waiting = waiting.lock().expect("nobody panics while it is held");
        if is_over { None } else { waiting.pop_front() }
    };
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for by in judges {
            let (tell, next, judge) = (tell.clone(), &next, &judge);
            scope.spawn(move || {
                while let Some((number, mutant)) = next() {
                    let verdict = judge(by, number, &mutant);
                    let is_wrong = verdict.is_err();
                    if tell.send((mutant, verdict)).is_err() || is_wrong {
                        return;
                    }
                }
            });
        }
        drop(tell);
        for (count, (mutant, verdict)) in told.iter().enumerate() {
            let verdict = verdict?;
            println!("{} of {all}  {:<9} {}", count + 1, verdict.word(), mutant.name);
            verdicts.add(&mutant, verdict)?;
        }
        Ok(())
    })
}

/// A line for each file; fine when every mutant has a verdict and every survivor its reason.
fn report(plan: &Plan, mutants: &[Mutant], verdicts: &Verdicts) -> bool {
    let mut files: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    let mut survivors = Vec::new();
    for mutant in mutants {
        let row = files.entry(&mutant.file).or_default();
        let column = match verdicts.of(mutant) {
            None => 4,
            Some(Verdict::Killed) => 0,
            Some(Verdict::Void) => 1,
            Some(Verdict::Survived) if plan.argued.contains_key(&mutant.name) => 2,
            Some(Verdict::Survived) => {
                survivors.push(&mutant.name);
                3
            }
        };
        row[column] += 1;
    }
    println!("\n{:<44} killed  void  argued  survived  not tried", "file");
    let mut sum = [0; 5];
    let line = |name: &str, [killed, void, argued, survived, open]: [usize; 5]| {
        println!("{name:<44} {killed:>6}  {void:>4}  {argued:>6}  {survived:>8}  {open:>9}");
    };
    for (file, row) in &files {
        line(file, *row);
        sum.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
    }
    line("all", sum);
    for name in &survivors {
        println!("survived: {name}");
    }
    survivors.is_empty() && sum[4] == 0
}

#[expect(clippy::disallowed_methods, reason = "a run may be bounded in time")]
fn clock() -> Instant {
    Instant::now()
}

/// The folder of all that a run leaves.
fn folder() -> Result<std::path::PathBuf, String> {
    let folder = shell::root().join("target/mutants");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_is_read() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let call = read(&words("--jobs 3 --minutes 5 owed.rs")).unwrap();
        assert_eq!((call.jobs, call.minutes, call.files.len()), (3, Some(5), 1));
        assert!(read(&words("--jobs 0")).is_err() && read(&words("--fast")).is_err());
    }
}
