//! A report: one page that needs nothing else, neither files nor scripts.

mod drawing;
mod page;

pub use drawing::{Drawing, Logarithm, PlotKind};

use std::fmt::Write;

use crate::claim::{Expected, Judged};
use crate::grid::Grid;
use crate::plot::{Plot, escaped};
use crate::result::Outcome;
use crate::summary::{ABREAST, heading, tally};

/// Sections in the order in which they are read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// What it is about.
    pub title: String,
    /// What there is to say first; paragraphs are parted by empty lines.
    pub text: String,
    /// In order.
    pub sections: Vec<Section>,
}

/// A part of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Its anchor in the page.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// In order.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Paragraphs, parted by empty lines.
    Text(String),
    /// A table under its title.
    Table(String, Grid),
    /// A drawing.
    Plot(Plot),
    /// Claims and whether they hold.
    Claims(Vec<Judged>),
}

impl Section {
    /// An outcome in full: what was asked, its claims, its plots, its figures.
    #[must_use]
    pub fn of(outcome: &Outcome, expected: &Expected, title: &str, text: &str) -> Section {
        let mut blocks = vec![Block::Text(text.to_owned())];
        if !outcome.claims.is_empty() {
            blocks.push(Block::Claims(outcome.claims.clone()));
        }
        let plots = expected.plots.iter().filter_map(|drawing| drawing.of(outcome, expected));
        blocks.extend(plots.map(Block::Plot));
        let profiles: Vec<&str> = outcome.each_profile().map(|(name, _)| name).collect();
        for some in profiles.chunks(ABREAST) {
            let figures = Grid::figures(outcome, expected, some);
            blocks.push(Block::Table(format!("All figures. {}", heading(outcome)), figures));
        }
        let slips = expected.slips.iter().map(|slip| format!("A slip of the paper: {slip}."));
        blocks.extend(slips.map(Block::Text));
        Section { id: outcome.experiment.clone(), title: title.to_owned(), blocks }
    }

    fn claims(&self) -> impl Iterator<Item = &Judged> {
        self.blocks.iter().flat_map(|block| match block {
            Block::Claims(claims) => claims.as_slice(),
            _ => &[],
        })
    }
}

impl Report {
    /// The page.
    #[must_use]
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        let mut page = format!("{}<title>{title}</title>\n{}", page::HEAD, page::STYLE);
        let _ = writeln!(page, "<body>\n<header>\n<h1>{title}</h1>");
        page += &paragraphs(&self.text);
        let claims: Vec<&Judged> = self.sections.iter().flat_map(Section::claims).collect();
        if !claims.is_empty() {
            let _ = writeln!(page, "<p class=\"tally\">{}</p>", escaped(&tally(claims)));
        }
        page += &self.contents();
        page += "</header>\n<main>\n";
        self.sections.iter().for_each(|section| page += &html_of(section));
        page + "</main>\n</body>\n</html>\n"
    }

    fn contents(&self) -> String {
        if self.sections.len() < 2 {
            return String::new();
        }
        let mut list = String::from("<nav><ul>\n");
        for section in &self.sections {
            let (id, title) = (escaped(&section.id), escaped(&section.title));
            let claims = match section.claims().next() {
                Some(_) => format!(" <small>{}</small>", escaped(&tally(section.claims()))),
                None => String::new(),
            };
            let _ = writeln!(list, "<li><a href=\"#{id}\">{title}</a>{claims}</li>");
        }
        list + "</ul></nav>\n"
    }
}

fn html_of(section: &Section) -> String {
    let (id, title) = (escaped(&section.id), escaped(&section.title));
    let mut out = format!("<section id=\"{id}\">\n<h2>{title}</h2>\n");
    for block in &section.blocks {
        out += &match block {
            Block::Text(text) => paragraphs(text),
            Block::Table(title, grid) => table(Some(title), grid),
            Block::Claims(claims) => table(None, &Grid::claims(claims)),
            Block::Plot(plot) => {
                let title = escaped(&plot.title);
                format!("<figure>\n<figcaption>{title}</figcaption>\n{}</figure>\n", plot.svg())
            }
        };
    }
    out + "</section>\n"
}

fn paragraphs(text: &str) -> String {
    let texts = text.split("\n\n").map(str::trim).filter(|text| !text.is_empty());
    texts.map(|text| format!("<p>{}</p>\n", escaped(text))).collect()
}

fn table(title: Option<&str>, grid: &Grid) -> String {
    let mut out = String::from("<div class=\"wide\"><table>\n");
    if let Some(title) = title {
        let _ = writeln!(out, "<caption>{}</caption>", escaped(title));
    }
    let class = |at: usize| if at < grid.words { "" } else { " class=\"number\"" };
    out += "<thead><tr>";
    for (at, cell) in grid.head.iter().enumerate() {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(at), escaped(cell));
    }
    out += "</tr></thead>\n<tbody>\n";
    for row in &grid.rows {
        out += "<tr>";
        for (at, cell) in row.iter().enumerate() {
            let verdict = page::VERDICTS.iter().find(|(word, _)| at == 0 && word == cell);
            let _ = match verdict {
                Some((_, sign)) => write!(out, "<td class=\"verdict\">{sign} {cell}</td>"),
                None => write!(out, "<td{}>{}</td>", class(at), escaped(cell)),
            };
        }
        out += "</tr>\n";
    }
    out + "</tbody>\n</table></div>\n"
}

#[cfg(test)]
mod tests;
