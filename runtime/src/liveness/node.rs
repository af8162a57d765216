//! A rank's thread: lets its children in for a while, then waits for a neighbour to be lost, or to say who is, and tells
//! the others. It asks its neighbours whether they are there when it is told to, and answers theirs.
//!
//! The states and rules are in [`liveness`](super). Rank 0 has no parent and most ranks have no children: the less they
//! have to do. Once the door is closed the thread runs only when there is news.

use std::io::{PipeReader, Read};

use litemap::LiteMap;
use rustix::event::{PollFd, PollFlags};

use super::admission::Admission;
use super::inquiry::Inquiry;
use super::link::{self, Frame, Link};
use super::{How, Lost, News, OnNews};
use crate::ids::Rank;
use crate::text::counted;
use crate::threads::clock::Clock;
use crate::warn::warn;

pub(super) struct Node {
    rank: Rank,
    orders: PipeReader,
    on_news: OnNews,
    clock: Clock,
    inquiry: Inquiry,
    /// None once all children are in, or the time is up.
    admission: Option<Admission>,
    /// The connections to its parent and to the children that have come.
    watched: LiteMap<Rank, Link>,
    /// The losses that were passed on.
    news: Vec<Lost>,
}

/// The source of an event from the kernel.
enum Source {
    Orders,
    Door,
    Knock(u64),
    Neighbour(Rank),
}

impl Node {
    pub(super) fn new(
        rank: Rank,
        parent: Option<(Rank, Link)>,
        admission: Option<Admission>,
        orders: PipeReader,
        on_news: OnNews,
    ) -> Node {
        Node {
            rank,
            orders,
            on_news,
            clock: Clock::machine(),
            inquiry: Inquiry::default(),
            admission,
            watched: parent.into_iter().collect(),
            news: Vec::new(),
        }
    }

    /// Works until the process leaves.
    pub(super) fn watch(mut self) {
        loop {
            self.close_door_in_time();
            // Looked at before the wait: what comes in time is read before a neighbour is called silent.
            let time_is_up = self.inquiry.timeout_ns(self.clock.now_ns()) == Some(0);
            for source in self.wait() {
                match source {
                    // Ready to be read: it does not block.
                    Source::Orders => match self.orders.read(&mut [0; 64]) {
                        Ok(0) => {
                            let links = self.watched.into_tuple_vec().into_iter().map(|(_, link)| link);
                            return link::part(links.collect(), self.rank);
                        }
                        Ok(_) => self.ask(None),
                        // Interrupted: it is still ready.
                        Err(_) => {}
                    },
                    Source::Door => self.answer_door(),
                    Source::Knock(number) => self.hear_knock(number),
                    Source::Neighbour(rank) => self.hear_neighbour(rank),
                }
            }
            if time_is_up {
                let silent = self.inquiry.overdue(self.clock.now_ns());
                silent.into_iter().for_each(|rank| (self.on_news)(News::Silent(rank)));
            }
        }
    }

    /// Sleeps until there is news.
    fn wait(&self) -> Vec<Source> {
        let mut waiting = vec![(Source::Orders, PollFd::new(&self.orders, PollFlags::IN))];
        if let Some(admission) = &self.admission {
            waiting.push((Source::Door, admission.poll_fd()));
            waiting.extend(admission.knocking().map(|(number, fd)| (Source::Knock(number), fd)));
        }
        waiting.extend(self.watched.iter().map(|(&rank, link)| (Source::Neighbour(rank), link.poll_fd())));
        let (sources, mut fds): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        let door_ns = self.admission.as_ref().map(Admission::timeout_ns);
        let answers_ns = self.inquiry.timeout_ns(self.clock.now_ns());
        link::wait(&mut fds, door_ns.into_iter().chain(answers_ns).min());
        let news = fds.iter().map(|fd| !fd.revents().is_empty());
        sources.into_iter().zip(news).filter_map(|(source, news)| news.then_some(source)).collect()
    }

    fn close_door_in_time(&mut self) {
        let Some(admission) = &mut self.admission else { return };
        if admission.awaited() == 0 {
            self.admission = None;
        } else if !admission.goes_on() {
            self.give_up("they did not connect in time");
        }
    }

    /// Ends the admission before everybody is in.
    fn give_up(&mut self, why: &str) {
        let Some(admission) = self.admission.take() else { return };
        let (rank, unwatched) = (self.rank, counted(admission.awaited(), "rank", "ranks"));
        warn(&format!("rank {rank} should watch {unwatched} more, nobody is told if they die: {why}"));
    }

    fn answer_door(&mut self) {
        let Some(admission) = &mut self.admission else { return };
        if let Err(error) = admission.answer() {
            self.give_up(&error.to_string());
        }
    }

    fn hear_knock(&mut self, number: u64) {
        let Some((rank, mut link)) = self.admission.as_mut().and_then(|admission| admission.hear(number))
        else {
            return;
        };
        link.send(&Frame::Welcome.encode());
        for &lost in &self.news {
            link.send(&Frame::Lost(lost).encode());
        }
        self.watched.insert(rank, link);
    }

    /// Asks all neighbours, but the one that has asked this rank, whether they are there.
    fn ask(&mut self, but: Option<Rank>) {
        let neighbours = self.watched.iter().map(|(&rank, _)| rank).filter(|&rank| Some(rank) != but);
        for rank in self.inquiry.begin(self.clock.now_ns(), neighbours) {
            self.send(rank, Frame::Ask);
        }
    }

    fn send(&mut self, rank: Rank, frame: Frame) {
        if let Some(link) = self.watched.get_mut(&rank) {
            link.send(&frame.encode());
        }
    }

    /// A neighbour says goodbye or who else is lost, asks or answers, or its connection has ended, or it takes again what was kept for it.
    fn hear_neighbour(&mut self, rank: Rank) {
        let Some(link) = self.watched.get_mut(&rank) else { return };
        link.flush();
        let open = link.hear();
        while let Some(frame) = self.watched.get_mut(&rank).and_then(Link::next_frame) {
            match frame {
                Some(Frame::Lost(lost)) if lost.rank != self.rank => self.lose(lost, rank),
                Some(Frame::Ask) => {
                    self.send(rank, Frame::Here);
                    self.ask(Some(rank));
                }
                Some(Frame::Here) => {
                    if self.inquiry.answered(rank) {
                        (self.on_news)(News::Answers(rank));
                    }
                }
                // No rank of this job says anything else now.
                _ => return self.lose(Lost { rank, how: How::Died }, rank),
            }
        }
        if !open {
            self.lose(Lost { rank, how: How::Died }, rank);
        }
    }

    /// A neighbour was lost, or one says that another rank was.
    fn lose(&mut self, lost: Lost, teller: Rank) {
        self.watched.remove(&lost.rank);
        self.inquiry.answered(lost.rank);
        if !self.is_news(lost) {
            return;
        }
        self.news.push(lost);
        let frame = Frame::Lost(lost).encode();
        for (_, link) in self.watched.iter_mut().filter(|&(&rank, _)| rank != teller) {
            link.send(&frame);
        }
        (self.on_news)(News::Lost(lost));
    }

    /// Whether it is the first loss, or the first death: see rule 6.
    fn is_news(&self, lost: Lost) -> bool {
        self.news.iter().all(|earlier| earlier.how == How::Left && lost.how == How::Died)
    }
}
