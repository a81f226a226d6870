//! `[subscribers]`: a table of customers, one leaf each. A row with a mistake is named and skipped;
//! the others count.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use weir_units::{ByWay, Prefix, Rate, Unreadable, limits};

use crate::amount::Burst;
use crate::class::is_segment;
use crate::columns::{ADDRESSES, BURST, COLUMNS, Columns, DOWN, ID, MAC, NAME, PARENT, PLAN, UP};
use crate::csv::{Row, anyhow, rows};
use crate::held::Want;
use crate::nearest::{instead, nearest};
use crate::problem::{At, Position, Problems};
use crate::reader::Entry;
use crate::skipped::SkippedRows;
use crate::source::Source;
use crate::{matching, say};

/// Where the table is and where its leaves hang.
#[derive(Clone, Debug)]
pub struct Subscribers {
    /// The file as written.
    pub file: At<String>,
    /// The class that `parent` counts from.
    pub under: Option<At<String>>,
    /// Whether the rows could be read at all.
    pub known: bool,
    /// The plans that rows may name, sorted.
    pub plans: Vec<String>,
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
    /// Guaranteed, if the row says it.
    pub rate: ByWay<Option<Rate>>,
    /// At most, if the row says it.
    pub ceil: ByWay<Option<Rate>>,
    /// What few tables have: apart, because a table may have a million rows.
    pub more: Option<Box<More>>,
    /// The row.
    pub place: Position,
    /// The line that it starts at, from 1.
    pub line: u32,
}

/// The columns that few tables have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct More {
    /// Its MAC addresses on the LAN side, for what is in none of the blocks.
    pub macs: Vec<[u8; 6]>,
    /// How much may leave at once, if the row says it.
    pub burst: Option<Burst>,
    /// The plan that it has the rest of.
    pub plan: Option<Box<str>>,
}

impl Subscriber {
    /// Its MAC addresses on the LAN side.
    #[must_use]
    pub fn macs(&self) -> &[[u8; 6]] {
        self.more.as_ref().map_or(&[], |more| &more.macs)
    }

    /// The plan that it is on.
    #[must_use]
    pub fn plan(&self) -> Option<&str> {
        self.more.as_ref()?.plan.as_deref()
    }

    /// How much may leave at once, if the row says it.
    #[must_use]
    pub fn burst(&self) -> Option<Burst> {
        self.more.as_ref()?.burst
    }
}

/// Reads `[subscribers]`: where the table is, not yet the table.
pub(crate) fn read(entry: Entry<'_>, problems: &mut Problems) -> Option<Subscribers> {
    let mut table = entry.table("[subscribers]", problems)?;
    let text = |e: Entry<'_>, word, expected, problems: &mut Problems| {
        e.text(word, expected, problems).map(|t| e.at(t.to_owned()))
    };
    let file = table.take("file");
    if file.is_none() && !table.misspells("file", &["file", "under"]) {
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
        plans: Vec::new(),
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
    let plans = into.plans.clone();
    let reader = Reader { columns, number, under, known: Some((classes, &plans)) };
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
    let reader = Reader { columns, number, under: String::new(), known: None };
    rows.take(limits::CLASSES).filter_map(|row| reader.row(&row).ok()).collect()
}

type Wrong = (Range<usize>, String, String);

struct Reader<'a> {
    columns: Columns,
    number: u16,
    under: String,
    /// The classes that a parent may be, and the plans; none where any may.
    known: Option<(&'a BTreeMap<&'a str, usize>, &'a [String])>,
}

impl Reader<'_> {
    fn row(&self, row: &Row<'_>) -> Result<Subscriber, Wrong> {
        let whole = || row.place.clone();
        let fields = row
            .fields
            .as_ref()
            .map_err(|why| (whole(), format!("the row cannot be read: {why}"), String::new()))?;
        let width = self.columns.width;
        if fields.len() != width {
            let what = format!("the row has {} fields, not {width}", fields.len());
            let help = "put a field that contains the separator in quotes".to_owned();
            return Err((whole(), what, help));
        }
        let field = |column: usize| match self.columns.at(column) {
            Some(at) => (fields[at].0.as_ref(), fields[at].1.clone()),
            None => ("", whole()),
        };
        let (id, id_place) = field(ID);
        if !is_segment(id) {
            let what = if id.is_empty() {
                "the row has no \"id\"".to_owned()
            } else {
                format!("\"{id}\" cannot be an id")
            };
            let help = "an id consists of letters, digits and - _ . : @ +".to_owned();
            return Err((id_place, what, help));
        }
        let parent = self.parent(field(PARENT))?;
        if self
            .known
            .is_some_and(|(classes, _)| classes.contains_key(format!("{parent}/{id}").as_str()))
        {
            let what = format!("the id \"{id}\" is the name of a class below \"{parent}/\"");
            return Err((id_place, what, "give the subscriber another id".to_owned()));
        }
        let (macs, burst, plan) =
            (macs(field(MAC))?, burst(field(BURST))?, self.plan(field(PLAN))?);
        let more = More { macs, burst, plan };
        let blocks = blocks(field(ADDRESSES), !more.macs.is_empty())?;
        let rate = |column: usize| rate(COLUMNS[column], field(column));
        let guaranteed = ByWay { down: rate(DOWN[0])?, up: rate(UP[0])? };
        let ceil = ByWay { down: rate(DOWN[1])?, up: rate(UP[1])? };
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
            name: field(NAME).0.into(),
            parent,
            blocks,
            rate: guaranteed,
            ceil,
            more: (more != More::default()).then(|| Box::new(more)),
            place: Position::in_file(self.number, &row.place),
            line: row.line,
        })
    }

    fn plan(&self, (text, place): (&str, Range<usize>)) -> Result<Option<Box<str>>, Wrong> {
        if text.is_empty() {
            return Ok(None);
        }
        let plans = self.known.map_or(&[][..], |(_, plans)| plans);
        if self.known.is_none() || plans.iter().any(|plan| plan == text) {
            return Ok(Some(text.into()));
        }
        let what = format!("there is no plan \"{text}\"");
        let help = match nearest(text, plans.iter().map(String::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("add [plan.\"{text}\"] to the policy"),
        };
        Err((place, what, help))
    }

    /// What is known of the subscriber of a row that was skipped.
    fn want(&self, bytes: &[u8], row: &Row<'_>, skip: usize) -> Option<Want> {
        let fields: Vec<Cow<'_, str>> = match &row.fields {
            Ok(fields) => fields.iter().map(|(field, _)| Cow::Borrowed(field.as_ref())).collect(),
            Err(_) => anyhow(bytes, row),
        };
        let field = |column: usize| fields.get(self.columns.at(column)?).map(AsRef::as_ref);
        let id = field(ID).filter(|id| is_segment(id)).map(Into::into);
        // with a wrong number of fields the others may be anything
        let is_whole = fields.len() == self.columns.width;
        let parent = field(PARENT).filter(|_| is_whole);
        let parent = parent.and_then(|text| self.parent((text, 0..0)).ok());
        let addresses = field(ADDRESSES).filter(|_| is_whole).unwrap_or_default();
        let blocks = addresses.split([';', ' ', ',']).filter_map(|part| part.parse().ok());
        let blocks: Vec<Prefix> = blocks.collect();
        (id.is_some() || !blocks.is_empty()).then_some(Want { skip, id, parent, blocks })
    }

    fn parent(&self, (text, place): (&str, Range<usize>)) -> Result<Box<str>, Wrong> {
        let inner = text.trim_matches('/');
        let whole = text.trim_end_matches('/');
        let is_class =
            |path: &str| self.known.is_none_or(|(classes, _)| classes.contains_key(path));
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
        let below = self.known.iter().flat_map(|(classes, _)| classes.keys());
        let below = below.filter_map(|c| c.strip_prefix(self.under.as_str()));
        let names: Vec<&str> = below.filter_map(|c| c.strip_prefix('/')).collect();
        let mut help = instead(inner, names.iter().copied());
        if help.is_empty() {
            help = format!("there is no class below \"{}/\": leave the parent empty", self.under);
        }
        Err((place, format!("the class \"{path}\" does not exist"), help))
    }
}

fn blocks((text, place): (&str, Range<usize>), has_macs: bool) -> Result<Vec<Prefix>, Wrong> {
    let mut blocks = Vec::new();
    for part in text.split([';', ' ', ',']).filter(|p| !p.is_empty()) {
        match crate::blocks::blocks(part) {
            Ok(of_part) => blocks.extend(of_part),
            Err((what, help)) => return Err((place, what, help)),
        }
    }
    blocks.sort_unstable();
    blocks.dedup();
    if blocks.is_empty() && !has_macs {
        let help =
            "write one or more, separated by semicolons: 10.1.0.7;2001:db8:7::/56".to_owned();
        return Err((place, "the row has no addresses".to_owned(), help));
    }
    Ok(blocks)
}

fn macs((text, place): (&str, Range<usize>)) -> Result<Vec<[u8; 6]>, Wrong> {
    let mut macs = Vec::new();
    for part in text.split([';', ' ', ',']).filter(|p| !p.is_empty()) {
        let usual = matching::usual_mac(part);
        match usual.as_deref().and_then(matching::mac) {
            Some(mac) => macs.push(mac),
            None => {
                let what = format!("\"mac\" cannot be \"{part}\"");
                return Err((place, what, "write 02:00:5e:10:00:01".to_owned()));
            }
        }
    }
    macs.sort_unstable();
    macs.dedup();
    Ok(macs)
}

fn burst((text, place): (&str, Range<usize>)) -> Result<Option<Burst>, Wrong> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error: Unreadable| {
        let what = format!("\"burst\" cannot be \"{text}\": {}", error.why());
        (place, what, error.help())
    })
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
            Err((place, what, error.help()))
        }
    }
}

/// Skips rows whose id or one of whose addresses an earlier row has that counts. Rows are judged in
/// the order of the file, and a row that was skipped takes nothing from others.
fn skip_twins(rows: &mut Vec<Subscriber>, wants: &mut Vec<Want>, problems: &mut Problems) {
    let mut ids: HashMap<(&str, &str), u32> = HashMap::with_capacity(rows.len());
    let mut taken: HashMap<Prefix, u32> = HashMap::with_capacity(rows.len());
    let mut macs: BTreeMap<[u8; 6], u32> = BTreeMap::new();
    let mut twins = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let id = (&*row.parent, &*row.id);
        let twin = match ids.get(&id) {
            Some(first) => {
                Some((format!("the id \"{}\" is the id of row {first}", row.id), UNIQUE))
            }
            None => {
                let block = row.blocks.iter().find_map(|block| {
                    let first = taken.get(block)?;
                    Some((format!("{block} is already the address of row {first}"), ONE))
                });
                let mac = || {
                    row.macs().iter().find_map(|mac| {
                        let (mac, first) = (say::mac(mac), macs.get(mac)?);
                        Some((format!("{mac} is already the MAC address of row {first}"), ONE))
                    })
                };
                block.or_else(mac)
            }
        };
        if let Some((what, help)) = twin {
            wants.push(Want::of(row, problems.skipped.count()));
            problems.skipped.add(row.place, row.line, what, help.to_owned());
            twins.push(at);
            continue;
        }
        ids.insert(id, row.line);
        taken.extend(row.blocks.iter().map(|&block| (block, row.line)));
        macs.extend(row.macs().iter().map(|&mac| (mac, row.line)));
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
