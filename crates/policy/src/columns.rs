//! The first row of the table of subscribers: which column is which. What billing systems export
//! has other columns too, in any order and with names in capitals; those are named in a note.

use crate::csv::Row;
use crate::nearest::{instead, nearest};
use crate::problem::{Position, Problems, Severity};

/// The columns that a table can have.
pub(crate) const COLUMNS: [&str; 11] = [
    "id",
    "name",
    "parent",
    "addresses",
    "down_rate",
    "down_ceil",
    "up_rate",
    "up_ceil",
    "plan",
    "burst",
    "mac",
];

pub(crate) const ID: usize = 0;
pub(crate) const NAME: usize = 1;
pub(crate) const PARENT: usize = 2;
pub(crate) const ADDRESSES: usize = 3;
pub(crate) const DOWN: [usize; 2] = [4, 5];
pub(crate) const UP: [usize; 2] = [6, 7];
pub(crate) const PLAN: usize = 8;
pub(crate) const BURST: usize = 9;
pub(crate) const MAC: usize = 10;

/// The column that billing systems have under another name.
fn also(name: &str) -> Option<usize> {
    Some(match name {
        "customer_id" | "subscriber_id" | "username" | "login" => ID,
        "ip" | "address" | "ip_address" => ADDRESSES,
        "mac_address" => MAC,
        "tariff" | "service_plan" => PLAN,
        _ => return None,
    })
}

/// Which field of a row is which.
pub(crate) struct Columns {
    at: [Option<usize>; COLUMNS.len()],
    /// How many fields a row has.
    pub(crate) width: usize,
}

impl Columns {
    pub(crate) fn read(header: &Row<'_>, number: u16, problems: &mut Problems) -> Option<Columns> {
        let whole = Position::in_file(number, &header.place);
        let fields = match &header.fields {
            Ok(fields) => fields,
            Err(why) => {
                let help = format!("it names the columns: {}", COLUMNS.join(","));
                problems.error(whole, format!("the first line cannot be read: {why}"), help);
                return None;
            }
        };
        let mut columns = Columns { at: [None; COLUMNS.len()], width: fields.len() };
        let mut others = Vec::new();
        // the names proper first: another name for a column that is there is an extra one
        for is_proper in [true, false] {
            for (at, (name, place)) in fields.iter().enumerate() {
                let lower = name.trim().to_ascii_lowercase().replace([' ', '-'], "_");
                let proper = COLUMNS.iter().position(|column| *column == lower);
                let column = if is_proper { proper } else { proper.xor(also(&lower)) };
                let place = Position::in_file(number, place);
                match column {
                    Some(column) if columns.at[column].is_none() => columns.at[column] = Some(at),
                    Some(column) if is_proper && columns.at[column] != Some(at) => {
                        let what = format!("the column \"{name}\" occurs twice");
                        problems.error(place, what, "remove one of them");
                    }
                    None if !is_proper => others.push((name.as_ref(), lower, place)),
                    Some(_) | None => {}
                }
            }
        }
        let misspelt = columns.judge(&others, problems);
        let needs = [(ID, ID), (ADDRESSES, MAC)];
        let missing: Vec<&str> = needs
            .iter()
            .filter(|&&(a, b)| columns.at[a].is_none() && columns.at[b].is_none())
            .map(|&(column, _)| COLUMNS[column])
            .filter(|name| !misspelt.contains(name))
            .collect();
        if !missing.is_empty() {
            let help = format!("the first line names the columns: {}", COLUMNS.join(","));
            let what = format!("the table has no column {}", missing.join(" and "));
            problems.error(whole, what, help);
        }
        (missing.is_empty() && misspelt.is_empty()).then_some(columns)
    }

    /// Which field of a row a column is.
    pub(crate) fn at(&self, column: usize) -> Option<usize> {
        self.at[column]
    }

    /// Says which columns are not used; those that are a slip of the pen are mistakes, because what
    /// is missing then makes customers unlimited. Returns what these were meant to be.
    fn judge(
        &self,
        others: &[(&str, String, Position)],
        problems: &mut Problems,
    ) -> Vec<&'static str> {
        let free = COLUMNS.iter().zip(&self.at).filter(|(_, at)| at.is_none());
        let free: Vec<&'static str> = free.map(|(name, _)| *name).collect();
        let (mut misspelt, mut extra) = (Vec::new(), Vec::new());
        for (name, lower, place) in others {
            if problems.is_full() {
                break;
            }
            match nearest(lower, free.iter().copied()).filter(|_| lower.len() > 3) {
                Some(near) => {
                    let what = format!("there is no column \"{name}\"");
                    problems.error(*place, what, instead(lower, free.iter().copied()));
                    misspelt.push(near);
                }
                None => extra.push((name, place)),
            }
        }
        if let Some((_, place)) = extra.first() {
            let names: Vec<String> =
                extra.iter().take(8).map(|(name, _)| format!("\"{name}\"")).collect();
            let more = match extra.len() - names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let (columns, are) =
                if extra.len() == 1 { ("column", "is") } else { ("columns", "are") };
            let what = format!("the {columns} {}{more} {are} not used", names.join(", "));
            let help = format!("weir reads {}", COLUMNS.join(","));
            problems.add(Severity::Note, **place, what, help);
        }
        misspelt
    }
}
