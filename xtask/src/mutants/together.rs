//! One build of all mutants that can have a switch, the tests that reach each of them, and what
//! those say of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use super::draw::Mutant;
use super::plan::Plan;
use super::switches::{self, Switched};
use super::verdicts::Verdict;
use super::{clock, worker};
use crate::shell;

/// So often is built again without those that a compiler does not take.
const ROUNDS: u32 = 30;

/// A test that takes longer is named: each survivor waits for it.
const SLOW: Duration = Duration::from_secs(4);

pub(crate) struct Together {
    seed: u64,
    tests: Vec<Test>,
    /// By mutant: those of its judges' tests that reach it.
    reach: BTreeMap<u32, Vec<usize>>,
}

/// One test of one judge.
struct Test {
    /// What `cargo test` was given to build it.
    run: Vec<String>,
    program: PathBuf,
    folder: PathBuf,
    name: String,
    took: Duration,
    asked: BTreeSet<u32>,
    /// So many mutants has it noticed.
    noticed: AtomicU32,
}

impl Together {
    /// Builds all that can be built together; those that can't are not in it.
    pub(crate) fn new(
        mutants: &[(u32, Mutant)],
        plan: &Plan,
        jobs: usize,
    ) -> Result<Together, String> {
        let (copy, build) = worker::copy("all")?;
        let units = copy.join("crates/units/src/lib.rs");
        let source = read(&units)?;
        write(&units, &(source + switches::SWITCH))?;
        // those of other crates need not be measured
        let of_crate = |(_, mutant): &(u32, Mutant)| plan.judges.get(mutant.of_crate());
        let runs: BTreeSet<_> = mutants.iter().filter_map(of_crate).flatten().cloned().collect();
        let (programs, with) = programs(&copy, &build, mutants, &runs)?;
        let mut tests = Vec::new();
        for (run, program, folder) in programs {
            tests.append(&mut list(&run, &program, &folder)?);
        }
        let (all, count) = (mutants.len(), with.len());
        println!("{count} of {all} in one build; {} tests show which each reaches", tests.len());
        measure(&mut tests, &build, plan.seed, jobs)?;
        let mut reach: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (number, mutant) in mutants.iter().filter(|(number, _)| with.contains(number)) {
            let judges = plan.judges.get(mutant.of_crate());
            let judges = judges.ok_or(format!("nothing judges crate {}", mutant.of_crate()))?;
            let is_judge = |test: &Test| judges.contains(&test.run) && test.asked.contains(number);
            let those = (0..tests.len()).filter(|&at| is_judge(&tests[at])).collect();
            reach.insert(*number, those);
        }
        Ok(Together { seed: plan.seed, tests, reach })
    }

    pub(crate) fn has(&self, number: u32) -> bool {
        self.reach.contains_key(&number)
    }

    /// Whom no test reaches, none notices. Who noticed others for little time is asked first.
    pub(crate) fn judge(&self, number: u32) -> Result<Verdict, String> {
        let reach = self.reach.get(&number).map_or(&[][..], Vec::as_slice);
        let mut tests: Vec<_> = reach.iter().map(|&at| &self.tests[at]).collect();
        tests.sort_by_key(|test| test.took / (1 + test.noticed.load(Relaxed)));
        for test in tests {
            let mut command = test.command(test.took * 10, self.seed);
            if !shell::show(command.env("WEIR_MUTANT", number.to_string()))? {
                test.noticed.fetch_add(1, Relaxed);
                return Ok(Verdict::Killed);
            }
        }
        Ok(Verdict::Survived)
    }
}

impl Test {
    fn command(&self, longest: Duration, seed: u64) -> Command {
        let mut command = Command::new("timeout");
        command.arg("--kill-after=5").arg((longest.as_secs() + 10).to_string());
        command.arg(&self.program).args(["--quiet", "--test-threads=1", "--exact", &self.name]);
        command.current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("PROPTEST_RNG_SEED", seed.to_string());
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
        command
    }
}

/// What it was built by, itself, and the folder it runs in.
type Program = (Vec<String>, PathBuf, PathBuf);

/// Builds the copy with switches, without those mutants that do not build; the test programs, and
/// the mutants that are in them.
fn programs(
    copy: &Path,
    build: &Path,
    mutants: &[(u32, Mutant)],
    runs: &BTreeSet<Vec<String>>,
) -> Result<(Vec<Program>, BTreeSet<u32>), String> {
    let mut files: BTreeMap<&str, Vec<(u32, Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants {
        files.entry(&mutant.file).or_default().push((*number, mutant.clone()));
    }
    let mut written: BTreeMap<&str, Switched> = BTreeMap::new();
    for (file, mutants) in &files {
        written.insert(file, switch(copy, file, mutants)?);
    }
    for round in 1..=ROUNDS {
        println!("built together, {round}. time");
        let mut programs = Vec::new();
        let mut faults = String::new();
        for run in runs {
            match worker::build(copy, build, run)? {
                Ok(found) => programs.extend(found.into_iter().map(|(p, f)| (run.clone(), p, f))),
                Err(text) => faults += &text,
            }
        }
        if faults.is_empty() {
            let with = written.values().flat_map(Switched::numbers).collect();
            return Ok((programs, with));
        }
        let mut wrong: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for (path, line) in places(&faults) {
            if let Some((file, switched)) = written.iter().find(|(file, _)| **file == path) {
                wrong.entry(file).or_default().extend(switched.at(line));
            }
        }
        wrong.retain(|_, numbers| !numbers.is_empty());
        if wrong.is_empty() {
            return Err(format!("the copy does not build:\n{faults}"));
        }
        for (file, numbers) in wrong {
            let mutants = files.get_mut(file).expect("it was written");
            mutants.retain(|(number, _)| !numbers.contains(number));
            written.insert(file, switch(copy, file, mutants)?);
        }
    }
    Err(format!("the copy does not build after {ROUNDS} rounds"))
}

/// Writes a file of the copy anew, with these mutants.
fn switch(copy: &Path, file: &str, mutants: &[(u32, Mutant)]) -> Result<Switched, String> {
    let source = read(&shell::root().join(file))?;
    if mutants.iter().any(|(_, mutant)| mutant.of(&source).is_none()) {
        return Err(format!("{file} is not what was read"));
    }
    let switched = switches::of_source(&source, mutants).map_err(|e| format!("{file}: {e}"))?;
    write(&copy.join(file), &switched.text)?;
    Ok(switched)
}

/// Where the compiler says that errors are.
fn places(faults: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut is_error = false;
    for line in faults.lines() {
        is_error |= line.starts_with("error");
        if let Some(place) = line.trim_start().strip_prefix("--> ").filter(|_| is_error) {
            let mut parts = place.split(':');
            if let (Some(path), Some(Ok(line))) = (parts.next(), parts.next().map(str::parse)) {
                found.push((path.to_owned(), line));
            }
            is_error = false;
        }
    }
    found
}

fn list(run: &[String], program: &Path, folder: &Path) -> Result<Vec<Test>, String> {
    let options = run.iter().skip_while(|word| *word != "--").skip(1);
    let mut command = Command::new(program);
    command.args(["--list", "--format", "terse"]).args(options).current_dir(folder);
    let output = shell::keep(&mut command)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let test = |name: &str| Test {
        run: run.to_owned(),
        program: program.to_owned(),
        folder: folder.to_owned(),
        name: name.to_owned(),
        took: Duration::ZERO,
        asked: BTreeSet::new(),
        noticed: AtomicU32::new(0),
    };
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(test).collect())
}

/// How long each test takes, and which mutants it reaches.
fn measure(tests: &mut [Test], build: &Path, seed: u64, jobs: usize) -> Result<(), String> {
    let waiting = Mutex::new(tests.iter_mut().enumerate());
    let faults = Mutex::new(String::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().expect("nobody panics while it is held").next();
                    let Some((at, test)) = next else { return };
                    if let Err(fault) = test.measure(&build.join(format!("asked-{at}")), seed) {
                        *faults.lock().expect("nobody panics while it is held") += &fault;
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap_or_default();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

impl Test {
    fn measure(&mut self, asked: &Path, seed: u64) -> Result<(), String> {
        let _ = std::fs::remove_file(asked);
        let mut command = self.command(Duration::from_secs(600), seed);
        command.env("WEIR_MUTANT", "0").env("WEIR_MUTANTS_ASKED", asked);
        let start = clock();
        if !shell::show(&mut command)? {
            return Err(format!("{} fails with no mutant\n", self.name));
        }
        self.took = clock() - start;
        if self.took > SLOW {
            println!("{} takes {} s", self.name, self.took.as_secs());
        }
        let text = std::fs::read_to_string(asked).unwrap_or_default();
        self.asked = text.lines().filter_map(|number| number.parse().ok()).collect();
        let _ = std::fs::remove_file(asked);
        Ok(())
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_errors_are_read_and_those_of_notes_are_not() {
        let text = "error[E0308]: `if` and `else` have incompatible types
  --> crates/shape/src/tree.rs:12:5
note: because
  --> crates/shape/src/tree.rs:90:5
error: aborting due to 1 previous error
";
        assert_eq!(places(text), [("crates/shape/src/tree.rs".to_owned(), 12)]);
    }
}
