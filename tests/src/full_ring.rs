//! A ring in which far more travels than may wait.

use caribou::{Chunk, Ctx, Reducer, Target};
use serde::{Deserialize, Serialize};

/// Each member begins with some tokens, and each token makes some hops.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct FullRing {
    /// Chunks of the ring.
    pub members: u32,
    /// Of each member.
    pub tokens: u32,
    /// Of each token.
    pub hops: u32,
    /// Bytes beside a token.
    pub bytes: usize,
}

impl FullRing {
    /// A member that has passed nothing on.
    pub fn member(self) -> Member {
        Member { ring: self, passed: 0 }
    }

    /// The value that the run ends with: hops of all tokens.
    pub fn passed(self) -> u64 {
        u64::from(self.members) * self.passed_each()
    }

    fn passed_each(self) -> u64 {
        u64::from(self.tokens) * u64::from(self.hops)
    }
}

/// A member of the ring.
#[derive(Serialize, Deserialize)]
pub struct Member {
    ring: FullRing,
    passed: u64,
}

/// What travels.
#[derive(Serialize, Deserialize)]
pub struct Token {
    hops: u32,
    pad: Vec<u8>,
}

impl Member {
    fn pass(&self, token: Token, ctx: &mut Ctx<'_, Self>) {
        ctx.send((ctx.index() + 1) % self.ring.members, token);
    }
}

impl Chunk for Member {
    type Index = u32;
    type Message = Token;

    fn start(&mut self, ctx: &mut Ctx<'_, Self>) {
        for _ in 0..self.ring.tokens {
            self.pass(Token { hops: self.ring.hops, pad: vec![7; self.ring.bytes] }, ctx);
        }
    }

    fn receive(&mut self, Token { hops, pad }: Token, ctx: &mut Ctx<'_, Self>) {
        self.passed += 1;
        if hops > 1 {
            self.pass(Token { hops: hops - 1, pad }, ctx);
        }
        if self.passed == self.ring.passed_each() {
            ctx.contribute(0, Reducer::Sum, vec![self.passed], Target::Exit);
        }
    }
}
