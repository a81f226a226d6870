//! `[subscribers]`: a table of customers, one leaf each. A row with a mistake is named and skipped;
//! the others count.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use weir_units::{ByWay, Prefix, Rate, limits};

use crate::class::is_segment;
use crate::csv::{Row, anyhow, rows};
use crate::held::Want;
use crate::nearest::instead;
use crate::problem::{At, Position, Problems};
use crate::reader::Entry;
use crate::skipped::SkippedRows;
use crate::source::Source;

/// Where the table is and where its leaves hang.
#[derive(Clone, Debug)]
pub struct Subscribers {
    /// The file as written.
    pub file: At<String>,
    /// The class that `parent` counts from.
    pub under: Option<At<String>>,
    /// Whether the rows could be read at all.
    pub known: bool,
    /// The good rows, and those that were good before.
    pub rows: Vec<Subscriber>,
    /// The rows that were skipped.
    pub skipped: SkippedRows,
}

impl Subscribers {
    /// The class that the table hangs under; empty for the link.
    pub(crate) fn under(&self) -> &str {
        self.under.as_ref().map_or("", |under| under.value.trim_end_matches('/'))
    }

    /// Whether the table hangs under the class with this path, or further below it.
    pub(crate) fn is_below(&self, path: &str) -> bool {
        self.under().strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// One customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    /// The last part of its path.
    pub id: Box<str>,
    /// What people call it.
    pub name: Box<str>,
    /// The path of the class it hangs under.
    pub parent: Box<str>,
    /// Its addresses on the LAN side.
    pub blocks: Vec<Prefix>,
    /// Guaranteed.
    pub rate: ByWay<Rate>,
    /// At most.
    pub ceil: ByWay<Option<Rate>>,
    /// The row.
    pub place: Position,
    /// The line that it starts at, from 1.
    pub line: u32,
}

pub(crate) const COLUMNS: [&str; 8] =
    ["id", "name", "parent", "addresses", "down_rate", "down_ceil", "up_rate", "up_ceil"];

/// Reads `[subscribers]`: where the table is, not yet the table.
pub(crate) fn read(entry: Entry<'_>, problems: &mut Problems) -> Option<Subscribers> {
    let mut table = entry.table("[subscribers]", problems)?;
    let text = |e: Entry<'_>, word, expected, problems: &mut Problems| {
        e.text(word, expected, problems).map(|t| e.at(t.to_owned()))
    };
    let file = table.take("file");
    if file.is_none() {
        let help = "add file = \"subscribers.csv\"";
        problems.error(entry.key, "[subscribers] has no \"file\"", help);
    }
    let file = file.and_then(|e| text(e, "file", "a file's name", problems));
    let under = table.take("under").and_then(|e| text(e, "under", "a class's path", problems));
    table.finish(&["file", "under"], problems);
    Some(Subscribers {
        file: file?,
        under,
        known: false,
        rows: Vec::new(),
        skipped: SkippedRows::default(),
    })
}

/// Reads the table itself; `known` tells whether a path is a class. Returns what is known of the
/// subscribers whose rows were skipped.
pub(crate) fn read_rows(
    into: &mut Subscribers,
    source: &Source,
    number: u16,
    classes: &BTreeMap<&str, usize>,
    problems: &mut Problems,
) -> Vec<Want> {
    let mut rows = rows(source.bytes());
    let under = into.under().to_owned();
    let Some(columns) = rows.next().and_then(|row| Columns::read(&row, number, problems)) else {
        if source.bytes().trim_ascii().is_empty() {
            let help = format!("its first line names the columns: {}", COLUMNS.join(","));
            problems.error(Position::in_file(number, &(0..0)), "the table is empty", help);
        }
        return Vec::new();
    };
    into.known = true;
    let reader = Reader { columns, number, under, classes: Some(classes) };
    let mut wants = Vec::new();
    for (row, count) in rows.zip(0..) {
        if count == limits::CLASSES {
            let what = format!("the table has more than {count} rows");
            let help = "split the link over several boxes, or remove rows that nobody needs";
            problems.error(Position::in_file(number, &row.place), what, help);
            break;
        }
        match reader.row(&row) {
            Ok(subscriber) => into.rows.push(subscriber),
            Err((place, what, help)) => {
                wants.extend(reader.want(source.bytes(), &row, problems.skipped.count()));
                problems.skipped.add(Position::in_file(number, &place), row.line, what, help);
            }
        }
    }
    skip_twins(&mut into.rows, &mut wants, problems);
    wants
}

/// Reads rows that were good before, whatever the classes are now.
pub(crate) fn read_held(source: &Source, number: u16) -> Vec<Subscriber> {
    let mut rows = rows(source.bytes());
    let columns = rows.next().and_then(|row| {
        // what is wrong with it has no reader
        Columns::read(&row, number, &mut Problems::default())
    });
    let Some(columns) = columns else { return Vec::new() };
    let reader = Reader { columns, number, under: String::new(), classes: None };
    rows.take(limits::CLASSES).filter_map(|row| reader.row(&row).ok()).collect()
}

/// Which field of a row is which.
struct Columns([Option<usize>; 8], usize);

impl Columns {
    fn read(header: &Row<'_>, number: u16, problems: &mut Problems) -> Option<Columns> {
        let whole = Position::in_file(number, &header.place);
        let fields = match &header.fields {
            Ok(fields) => fields,
            Err(why) => {
                let help = format!("it names the columns: {}", COLUMNS.join(","));
                problems.error(whole, format!("the first line cannot be read: {why}"), help);
                return None;
            }
        };
        let mut columns = [None; 8];
        for (at, (name, place)) in fields.iter().enumerate() {
            if problems.is_full() {
                break;
            }
            match COLUMNS.iter().position(|c| c == name) {
                Some(column) if columns[column].is_none() => columns[column] = Some(at),
                Some(_) => {
                    let what = format!("the column \"{name}\" occurs twice");
                    problems.error(Position::in_file(number, place), what, "remove one of them");
                }
                None => {
                    let what = format!("there is no column \"{name}\"");
                    let help = instead(name, COLUMNS);
                    problems.error(Position::in_file(number, place), what, help);
                }
            }
        }
        let missing: Vec<&str> =
            [0, 3].iter().filter(|&&c| columns[c].is_none()).map(|&c| COLUMNS[c]).collect();
        if missing.is_empty() {
            return Some(Columns(columns, fields.len()));
        }
        let help = format!("the first line names the columns: {}", COLUMNS.join(","));
        problems.error(whole, format!("the table has no column {}", missing.join(" and ")), help);
        None
    }
}

type Wrong = (Range<usize>, String, String);

struct Reader<'a> {
    columns: Columns,
    number: u16,
    under: String,
    /// The classes that a parent may be; none where any may.
    classes: Option<&'a BTreeMap<&'a str, usize>>,
}

impl Reader<'_> {
    fn row(&self, row: &Row<'_>) -> Result<Subscriber, Wrong> {
        let whole = || row.place.clone();
        let fields = row
            .fields
            .as_ref()
            .map_err(|why| (whole(), format!("the row cannot be read: {why}"), String::new()))?;
        if fields.len() != self.columns.1 {
            let what = format!("the row has {} fields, not {}", fields.len(), self.columns.1);
            return Err((whole(), what, "put a field that contains a comma in quotes".to_owned()));
        }
        let field = |column: usize| match self.columns.0[column] {
            Some(at) => (fields[at].0.as_ref(), fields[at].1.clone()),
            None => ("", whole()),
        };
        let (id, id_place) = field(0);
        if !is_segment(id) {
            let what = if id.is_empty() {
                "the row has no \"id\"".to_owned()
            } else {
                format!("\"{id}\" cannot be an id")
            };
            let help = "an id consists of letters, digits and - _ . : @ +".to_owned();
            return Err((id_place, what, help));
        }
        let parent = self.parent(field(2))?;
        if self.classes.is_some_and(|known| known.contains_key(format!("{parent}/{id}").as_str())) {
            let what = format!("the id \"{id}\" is the name of a class below \"{parent}/\"");
            return Err((id_place, what, "give the subscriber another id".to_owned()));
        }
        let blocks = blocks(field(3))?;
        let rate = |column: usize| rate(COLUMNS[column], field(column));
        let guaranteed = ByWay { down: rate(4)?, up: rate(6)? };
        let ceil = ByWay { down: rate(5)?, up: rate(7)? };
        for (direction, (rate, ceil)) in guaranteed.zip(ceil).named() {
            if let (Some(rate), Some(ceil)) = (rate, ceil)
                && rate > ceil
            {
                let what = format!(
                    "it is guaranteed {rate} {direction} but has a ceiling of \
                    {ceil}"
                );
                return Err((whole(), what, "raise the ceil or lower the rate".to_owned()));
            }
        }
        Ok(Subscriber {
            id: id.into(),
            name: field(1).0.into(),
            parent,
            blocks,
            rate: guaranteed.map(Option::unwrap_or_default),
            ceil,
            place: Position::in_file(self.number, &row.place),
            line: row.line,
        })
    }

    /// What is known of the subscriber of a row that was skipped.
    fn want(&self, bytes: &[u8], row: &Row<'_>, skip: usize) -> Option<Want> {
        let fields: Vec<Cow<'_, str>> = match &row.fields {
            Ok(fields) => fields.iter().map(|(field, _)| Cow::Borrowed(field.as_ref())).collect(),
            Err(_) => anyhow(bytes, row),
        };
        let field = |column: usize| fields.get(self.columns.0[column]?).map(AsRef::as_ref);
        let id = field(0).filter(|id| is_segment(id)).map(Into::into);
        // with a wrong number of fields the others may be anything
        let is_whole = fields.len() == self.columns.1;
        let parent = field(2).filter(|_| is_whole);
        let parent = parent.and_then(|text| self.parent((text, 0..0)).ok());
        let addresses = field(3).filter(|_| is_whole).unwrap_or_default();
        let blocks = addresses.split([';', ' ', ',']).filter_map(|part| part.parse().ok());
        let blocks: Vec<Prefix> = blocks.collect();
        (id.is_some() || !blocks.is_empty()).then_some(Want { skip, id, parent, blocks })
    }

    fn parent(&self, (text, place): (&str, Range<usize>)) -> Result<Box<str>, Wrong> {
        let inner = text.trim_matches('/');
        let whole = text.trim_end_matches('/');
        let is_class = |path: &str| self.classes.is_none_or(|known| known.contains_key(path));
        let path = if text.starts_with('/') && (is_class(whole) || text == "/") {
            whole.to_owned()
        } else if inner.is_empty() {
            self.under.clone()
        } else {
            format!("{}/{inner}", self.under)
        };
        let path = path.trim_end_matches('/');
        if path.is_empty() || is_class(path) {
            return Ok(path.into());
        }
        let below = self.classes.iter().flat_map(|known| known.keys());
        let below = below.filter_map(|c| c.strip_prefix(self.under.as_str()));
        let names: Vec<&str> = below.filter_map(|c| c.strip_prefix('/')).collect();
        let mut help = instead(inner, names.iter().copied());
        if help.is_empty() {
            help = format!("there is no class below \"{}/\": leave the parent empty", self.under);
        }
        Err((place, format!("the class \"{path}\" does not exist"), help))
    }
}

fn blocks((text, place): (&str, Range<usize>)) -> Result<Vec<Prefix>, Wrong> {
    let mut blocks = Vec::new();
    for part in text.split([';', ' ', ',']).filter(|p| !p.is_empty()) {
        match part.parse() {
            Ok(block) => blocks.push(block),
            Err(error) => {
                let error: weir_units::Unreadable = error;
                return Err((place, error.to_string(), String::new()));
            }
        }
    }
    blocks.sort_unstable();
    blocks.dedup();
    if blocks.is_empty() {
        let help =
            "write one or more, separated by semicolons: 10.1.0.7;2001:db8:7::/56".to_owned();
        return Err((place, "the row has no addresses".to_owned(), help));
    }
    Ok(blocks)
}

fn rate(column: &str, (text, place): (&str, Range<usize>)) -> Result<Option<Rate>, Wrong> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<Rate>() {
        Ok(Rate::ZERO) if column.ends_with("ceil") => {
            Err((place, format!("\"{column}\" is zero"), "no frame could ever leave".to_owned()))
        }
        Ok(rate) => Ok(Some(rate)),
        Err(error) => {
            let what = format!("\"{column}\" cannot be \"{text}\": {}", error.why());
            Err((place, what, format!("write {}", error.expected())))
        }
    }
}

/// Skips rows whose id or one of whose addresses an earlier row has that counts. Rows are judged in
/// the order of the file, and a row that was skipped takes nothing from others.
fn skip_twins(rows: &mut Vec<Subscriber>, wants: &mut Vec<Want>, problems: &mut Problems) {
    let mut ids: HashMap<(&str, &str), u32> = HashMap::with_capacity(rows.len());
    let mut taken: HashMap<Prefix, u32> = HashMap::with_capacity(rows.len());
    let mut twins = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let id = (&*row.parent, &*row.id);
        let twin = match ids.get(&id) {
            Some(first) => {
                Some((format!("the id \"{}\" is the id of row {first}", row.id), UNIQUE))
            }
            None => row.blocks.iter().find_map(|block| {
                let first = taken.get(block)?;
                Some((format!("{block} is already the address of row {first}"), ONE))
            }),
        };
        if let Some((what, help)) = twin {
            wants.push(Want::of(row, problems.skipped.count()));
            problems.skipped.add(row.place, row.line, what, help.to_owned());
            twins.push(at);
            continue;
        }
        ids.insert(id, row.line);
        taken.extend(row.blocks.iter().map(|&block| (block, row.line)));
    }
    let mut at = 0;
    let mut twins = twins.into_iter().peekable();
    rows.retain(|_| {
        let is_twin = twins.next_if_eq(&at).is_some();
        at += 1;
        !is_twin
    });
}

const UNIQUE: &str = "ids are unique";
const ONE: &str = "one address, one subscriber";
