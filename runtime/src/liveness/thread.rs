//! The thread of the failure detector. It accepts children for a while, then waits for losses, forwards them, and
//! exchanges pings and pongs.
//!
//! The states and rules are in [`liveness`](super). Rank 0 has no parent, and most ranks have no children. After the
//! listener is closed, the thread runs only for events.

use std::io::{PipeReader, Read};

use litemap::LiteMap;
use rustix::event::{PollFd, PollFlags};

use super::handshakes::Handshakes;
use super::link::{self, Frame, Link};
use super::pings::PingRounds;
use super::{LossKind, Lost, OnPeerEvent, PeerEvent};
use crate::ids::Rank;
use crate::text::counted;
use crate::threads::clock::Clock;
use crate::warn::warn;

pub(super) struct LivenessThread {
    rank: Rank,
    commands: PipeReader,
    on_event: OnPeerEvent,
    clock: Clock,
    inquiry: PingRounds,
    /// None after all children have connected, or the time is up.
    handshakes: Option<Handshakes>,
    /// The connections to the parent and to children that have connected.
    watched: LiteMap<Rank, Link>,
    /// The losses that were forwarded.
    reported: Vec<Lost>,
}

/// The source of an event from the kernel.
enum Source {
    Commands,
    Listener,
    Pending(u64),
    Neighbour(Rank),
}

impl LivenessThread {
    pub(super) fn new(
        rank: Rank,
        parent: Option<(Rank, Link)>,
        admission: Option<Handshakes>,
        orders: PipeReader,
        on_news: OnPeerEvent,
    ) -> LivenessThread {
        LivenessThread {
            rank,
            commands: orders,
            on_event: on_news,
            clock: Clock::machine(),
            inquiry: PingRounds::default(),
            handshakes: admission,
            watched: parent.into_iter().collect(),
            reported: Vec::new(),
        }
    }

    /// Runs until the process leaves.
    pub(super) fn run(mut self) {
        loop {
            self.close_listener_on_timeout();
            // Read before the wait, so that pongs that arrive in time are read before a neighbour counts as silent.
            let time_is_up = self.inquiry.timeout_ns(self.clock.now_ns()) == Some(0);
            for source in self.wait() {
                match source {
                    // The pipe is ready, so reading does not block.
                    Source::Commands => match self.commands.read(&mut [0; 64]) {
                        Ok(0) => {
                            let links = self.watched.into_tuple_vec().into_iter().map(|(_, link)| link);
                            return link::say_goodbye(links.collect(), self.rank);
                        }
                        Ok(_) => self.ask(None),
                        // Interrupted: the pipe is still ready.
                        Err(_) => {}
                    },
                    Source::Listener => self.accept_connections(),
                    Source::Pending(number) => self.read_pending(number),
                    Source::Neighbour(rank) => self.read_neighbour(rank),
                }
            }
            if time_is_up {
                let silent = self.inquiry.overdue(self.clock.now_ns());
                silent.into_iter().for_each(|rank| (self.on_event)(PeerEvent::Silent(rank)));
            }
        }
    }

    /// Sleeps until there are events.
    fn wait(&self) -> Vec<Source> {
        let mut waiting = vec![(Source::Commands, PollFd::new(&self.commands, PollFlags::IN))];
        if let Some(admission) = &self.handshakes {
            waiting.push((Source::Listener, admission.poll_fd()));
            waiting.extend(admission.knocking().map(|(number, fd)| (Source::Pending(number), fd)));
        }
        waiting.extend(self.watched.iter().map(|(&rank, link)| (Source::Neighbour(rank), link.poll_fd())));
        let (sources, mut fds): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        let door_ns = self.handshakes.as_ref().map(Handshakes::timeout_ns);
        let answers_ns = self.inquiry.timeout_ns(self.clock.now_ns());
        link::wait(&mut fds, door_ns.into_iter().chain(answers_ns).min());
        let news = fds.iter().map(|fd| !fd.revents().is_empty());
        sources.into_iter().zip(news).filter_map(|(source, news)| news.then_some(source)).collect()
    }

    fn close_listener_on_timeout(&mut self) {
        let Some(admission) = &mut self.handshakes else { return };
        if admission.awaited() == 0 {
            self.handshakes = None;
        } else if !admission.expire() {
            self.give_up("they did not connect in time");
        }
    }

    /// Stops accepting before all children have connected.
    fn give_up(&mut self, why: &str) {
        let Some(admission) = self.handshakes.take() else { return };
        let (rank, unwatched) = (self.rank, counted(admission.awaited(), "rank", "ranks"));
        warn(&format!("rank {rank} does not watch {unwatched}, whose loss would not be detected: {why}"));
    }

    fn accept_connections(&mut self) {
        let Some(admission) = &mut self.handshakes else { return };
        if let Err(error) = admission.accept() {
            self.give_up(&error.to_string());
        }
    }

    fn read_pending(&mut self, number: u64) {
        let Some((rank, mut link)) =
            self.handshakes.as_mut().and_then(|admission| admission.read_hello(number))
        else {
            return;
        };
        link.send(&Frame::Welcome.encode());
        for &lost in &self.reported {
            link.send(&Frame::Lost(lost).encode());
        }
        self.watched.insert(rank, link);
    }

    /// Pings all neighbours except `but`, which has pinged this rank.
    fn ask(&mut self, but: Option<Rank>) {
        let neighbours = self.watched.iter().map(|(&rank, _)| rank).filter(|&rank| Some(rank) != but);
        for rank in self.inquiry.begin(self.clock.now_ns(), neighbours) {
            self.send(rank, Frame::Ping);
        }
    }

    fn send(&mut self, rank: Rank, frame: Frame) {
        if let Some(link) = self.watched.get_mut(&rank) {
            link.send(&frame.encode());
        }
    }

    /// Handles a neighbour that has sent frames, whose connection has ended, or that can take queued bytes again.
    fn read_neighbour(&mut self, rank: Rank) {
        let Some(link) = self.watched.get_mut(&rank) else { return };
        link.flush();
        let open = link.read_available();
        while let Some(frame) = self.watched.get_mut(&rank).and_then(Link::next_frame) {
            match frame {
                Some(Frame::Lost(lost)) if lost.rank != self.rank => self.lose(lost, rank),
                Some(Frame::Ping) => {
                    self.send(rank, Frame::Pong);
                    self.ask(Some(rank));
                }
                Some(Frame::Pong) => {
                    if self.inquiry.pong_received(rank) {
                        (self.on_event)(PeerEvent::Answers(rank));
                    }
                }
                // No rank of this job sends any other frame in this state.
                _ => return self.lose(Lost { rank, kind: LossKind::Died }, rank),
            }
        }
        if !open {
            self.lose(Lost { rank, kind: LossKind::Died }, rank);
        }
    }

    /// Handles the loss of a neighbour, or of another rank that a neighbour has reported.
    fn lose(&mut self, lost: Lost, teller: Rank) {
        self.watched.remove(&lost.rank);
        self.inquiry.pong_received(lost.rank);
        if !self.is_unreported(lost) {
            return;
        }
        self.reported.push(lost);
        let frame = Frame::Lost(lost).encode();
        for (_, link) in self.watched.iter_mut().filter(|&(&rank, _)| rank != teller) {
            link.send(&frame);
        }
        (self.on_event)(PeerEvent::Lost(lost));
    }

    /// Tells whether this is the first loss, or the first death (rule 6).
    fn is_unreported(&self, lost: Lost) -> bool {
        self.reported.iter().all(|earlier| earlier.kind == LossKind::Left && lost.kind == LossKind::Died)
    }
}
