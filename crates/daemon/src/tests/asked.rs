//! Control and what reads the link, asked one thing after the other, as [`serve`] does it on
//! several threads.

use weir_control::{Answer, How, Metrics, Refused, Request, Stopped};
use weir_units::Instant;

use crate::board::{self, Counted, Look};
use crate::control::{Asker, Back, Control};
use crate::desk::{Read, Text};
use crate::reader::Reader;
use crate::serve;

/// A link that is asked here and now.
pub(super) struct Asked {
    pub(super) control: Control,
    pub(super) reader: Reader,
}

impl Asked {
    /// Answers one line with one line.
    pub(super) fn answer_line(&mut self, line: &[u8], asker: Asker<'_>) -> String {
        let answer = Request::read(line).and_then(|request| self.answer(request, asker));
        weir_control::line(&answer)
    }

    fn answer(&mut self, asked: Request, asker: Asker<'_>) -> Result<Answer, Refused> {
        let now = asker.now;
        match asked {
            Request::Status => {
                let look = self.look(now);
                Ok(Answer::Status(Box::new(board::status(&self.control.told(), Some(&look), now))))
            }
            Request::Tree { all, path, filter } => {
                let counted = self.count(now);
                board::tree(&self.control.told(), Some(&counted), (all, &path, &filter), now)
                    .map(Answer::Tree)
            }
            Request::Metrics => {
                let (look, counted) = (self.look(now), self.count(now));
                let text = board::metrics(&self.control.told(), Some(&look), Some(&counted), now);
                Ok(Answer::Metrics(Metrics { text }))
            }
            Request::Books => serve::books(&mut self.reader, now),
            Request::Apply(apply) => {
                let text = Text::Policy(apply);
                match text.read(asker.by(How::Apply), self.control.told().before())? {
                    Read::Policy(prepared) => self.control.put(*prepared, asker),
                    Read::Request(_) | Read::File(..) => unreachable!("a policy is read"),
                }
            }
            Request::Rollback { to, comment } => match self.control.back_to(to, &comment, asker)? {
                Back::Done(moved) => Ok(Answer::Moved(moved)),
                Back::To(sources, by) => {
                    match Text::Again(sources).read(by, self.control.told().before())? {
                        Read::Policy(prepared) => {
                            self.control.go_back(*prepared, asker).map(Answer::Moved)
                        }
                        Read::Request(_) | Read::File(..) => unreachable!("a policy is read"),
                    }
                }
            },
            Request::Stop => {
                let link = self.control.told().revision.plan.name.clone();
                Ok(Answer::Stopped(Stopped { link }))
            }
            other => self.control.simple(&other, asker),
        }
    }

    pub(super) fn look(&mut self, now: Instant) -> Look {
        let told = self.control.told();
        Look::of(&mut self.reader, &self.control.facts(), told.is_alive, now)
    }

    pub(super) fn count(&mut self, now: Instant) -> Counted {
        let terms = self.control.told().terms;
        let report = self.reader.report(&terms);
        // nobody changes the policy meanwhile
        Counted::of(report.map(Option::unwrap), &terms, now)
    }
}
