//! All filters in their order.
//!
//! What one filter takes goes on to the next; the first other verdict is the last word.  A batch is handed to a filter whole, so
//! its articles wait side by side: each at most the filter's time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use newsreel_service::{ArticleFilter, FilterCounts, Reject, Subject, Verdict, Verdicts};
use newsreel_wire::article::{HeaderLimits, Headers, Known};
use newsreel_wire::{Wildmat, newsgroups};
use tokio::time::Instant;

use crate::builtin::Builtin;
use crate::config::{Fallback, FilterConfig, FilterRule};
use crate::counts::Counts;
use crate::program::{Asked, Program};

/// How long a start waits for programs: longer and the server is worse than without them.
const BEGIN_MAX: Duration = Duration::from_secs(10);

/// The filters of a server.
#[derive(Debug)]
pub struct Filters(Vec<Filter>);

#[derive(Debug)]
struct Filter {
    rule: FilterRule,
    /// Where its time begins.
    begun: Instant,
    groups: Wildmat,
    builtin: Builtin,
    program: Option<Program>,
    counts: Arc<Counts>,
}

impl Filters {
    /// Starts their programs, as tasks of the runtime it is called in; they end when it is dropped.
    ///
    /// # Errors
    /// What is wrong with the entries.
    pub fn start(rules: &[FilterRule]) -> Result<Self, String> {
        if let Some((key, right)) = FilterConfig::problems(rules).into_iter().next() {
            return Err(format!("filter{key}: {right}"));
        }
        let filters = rules.iter().map(|rule| {
            let groups = Wildmat::parse(&rule.groups).map_err(|error| error.to_string())?;
            let counts = Arc::<Counts>::default();
            Ok(Filter {
                builtin: Builtin::new(rule)?,
                program: (!rule.program.is_empty()).then(|| Program::start(rule, &counts)),
                counts,
                rule: rule.clone(),
                begun: Instant::now(),
                groups,
            })
        });
        filters.collect::<Result<_, _>>().map(Self)
    }
}

impl ArticleFilter for Filters {
    fn judge(&self, subjects: Vec<Subject>) -> Verdicts<'_> {
        Box::pin(async move {
            let mut verdicts = vec![Verdict::Accept; subjects.len()];
            for filter in &self.0 {
                filter.judge(&subjects, &mut verdicts).await;
            }
            verdicts
        })
    }

    fn counts(&self) -> Vec<FilterCounts> {
        let all = self.0.iter();
        all.map(|filter| filter.counts.values(&filter.rule.name))
            .collect()
    }

    fn begun(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let all = async {
            for program in self.0.iter().filter_map(|filter| filter.program.as_ref()) {
                program.begun().await;
            }
        };
        Box::pin(async {
            let _ = tokio::time::timeout(BEGIN_MAX, all).await;
        })
    }
}

/// What is taken keeps what a filter before said of it.
fn set(verdict: &mut Verdict, judged: Verdict) {
    if judged != Verdict::Accept {
        *verdict = judged;
    }
}

impl Filter {
    /// Judges those that were taken up to here.
    async fn judge(&self, subjects: &[Subject], verdicts: &mut [Verdict]) {
        let now = Instant::now();
        let now_ms = now.duration_since(self.begun).as_millis();
        let now_ms = u64::try_from(now_ms).unwrap_or(u64::MAX);
        let until = now + Duration::from_millis(self.rule.late_ms);
        let mut asked: Vec<(&mut Verdict, Option<Asked>)> = Vec::new();
        for (subject, verdict) in subjects.iter().zip(verdicts) {
            let is_taken = matches!(verdict, Verdict::Accept | Verdict::Class(_));
            if !is_taken || !self.is_for(subject) {
                continue;
            }
            match (self.builtin.judge(subject, now_ms), &self.program) {
                (Verdict::Accept, Some(program)) => {
                    asked.push((verdict, program.ask(subject, until)))
                }
                (judged, _) => self.note(verdict, judged),
            }
        }
        for (verdict, asked) in asked {
            let answer = match asked {
                Some(asked) => tokio::time::timeout_at(until, asked).await.ok(),
                None => None,
            };
            match answer.and_then(Result::ok) {
                Some(judged) => self.note(verdict, judged),
                None => {
                    self.counts.not_judged();
                    set(verdict, self.fallback());
                }
            }
        }
    }

    /// It has judged an article.
    fn note(&self, verdict: &mut Verdict, judged: Verdict) {
        self.counts.judged(&judged);
        set(verdict, judged);
    }

    fn is_for(&self, subject: &Subject) -> bool {
        let is_wanted = match subject.is_post {
            true => self.rule.posts,
            false => self.rule.feeds,
        };
        is_wanted && (self.groups.matches_all() || self.is_in_its_groups(subject))
    }

    fn is_in_its_groups(&self, subject: &Subject) -> bool {
        let Ok(headers) = Headers::scan_within(&subject.article, HeaderLimits::MOST) else {
            return false;
        };
        let named = headers.content(Known::Newsgroups).unwrap_or_default();
        let mut named = newsgroups::split(named).filter_map(Result::ok);
        named.any(|name| self.groups.matches(name.as_str()))
    }

    /// What holds for an article that was not judged in time.
    fn fallback(&self) -> Verdict {
        match self.rule.when_down {
            Fallback::Accept => Verdict::Accept,
            Fallback::Reject => Verdict::Reject(Reject::Filtered.text()),
            Fallback::Defer => Verdict::Later,
        }
    }
}
