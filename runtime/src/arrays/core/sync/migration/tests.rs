use super::*;

const SYNC: Occasion = Occasion::Sync(SyncId(7));
const HERE: Rank = Rank(1);

fn chunk(key: u64) -> ChunkId {
    ChunkId { array: ArrayId(0), key }
}

/// Every chunk is in the cell of its own number.
fn cell(chunk: ChunkId) -> Option<CellId> {
    Some(CellId(chunk.key as u32))
}

fn one_move(key: u64, from: u32, to: u32) -> Move {
    Move { chunk: chunk(key), from: Rank(from), to: Rank(to) }
}

fn transfer(key: u64) -> ChunkTransfer {
    ChunkTransfer { bytes: 10, ..ChunkTransfer::without_body(chunk(key)) }
}

fn transit(_: ArrayId) -> Transit {
    Transit::after(3)
}

fn outgoing_chunk(key: u64, to: u32) -> Outgoing {
    Outgoing { chunk: chunk(key), cell: cell(chunk(key)), to: Rank(to) }
}

fn switch(outgoing: &[Outgoing]) -> MigrationStep {
    MigrationStep::SwitchRoutes { occasion: SYNC, outgoing: outgoing.to_vec() }
}

fn release(key: u64, to: u32) -> MigrationStep {
    let transit = Transit { resumes: true, ..transit(ArrayId(0)) };
    MigrationStep::MigrateOut { chunk: chunk(key), cell: CellId(key as u32), to: Rank(to), transit }
}

fn flushed(bytes: u64) -> MigrationStep {
    let mut migration_bytes = MigrationBytes::default();
    migration_bytes.bytes = bytes;
    MigrationStep::Flushed(migration_bytes)
}

fn landed(migrations: &mut Migrations) -> Vec<ChunkId> {
    migrations.complete().into_iter().map(|transfer| transfer.chunk).collect()
}

#[test]
fn a_sync_that_moves_nothing_changes_nothing() {
    let mut migrations = Migrations::new(HERE);
    assert_eq!(migrations.begin(SYNC, &[], cell), []);
    assert_eq!(migrations.begin(Occasion::Sync(SyncId(8)), &[one_move(1, 0, 1)], cell).len(), 1);
}

#[test]
fn outgoing_chunks_stop_then_the_routes_change_then_they_leave_when_the_rank_is_drained() {
    let mut migrations = Migrations::new(HERE);
    let moves = [one_move(1, 1, 0), one_move(2, 1, 2), one_move(3, 0, 2)];
    assert_eq!(migrations.begin(SYNC, &moves, cell), [MigrationStep::Hold(vec![CellId(1), CellId(2)])]);
    assert_eq!(migrations.held(transit), []);
    assert_eq!(migrations.held(transit), [switch(&[outgoing_chunk(1, 0), outgoing_chunk(2, 2)])]);
    let found = migrations.outgoing_cell(chunk(2));
    assert_eq!(found, Some(CellId(2)), "messages under the old routes go to its mailbox");
    assert_eq!(migrations.drained(), [release(1, 0), release(2, 2), flushed(0)]);
    assert_eq!(migrations.outgoing_cell(chunk(2)), None);
    assert_eq!(landed(&mut migrations), []);
}

#[test]
fn a_rank_without_outgoing_or_incoming_chunks_switches_and_is_drained_too() {
    let mut migrations = Migrations::new(HERE);
    assert_eq!(migrations.begin(SYNC, &[one_move(1, 0, 2)], cell), [switch(&[])]);
    assert_eq!(migrations.drained(), [flushed(0)]);
    assert_eq!(landed(&mut migrations), []);
}

#[test]
fn an_incoming_chunk_may_come_before_the_rank_is_drained_and_is_admitted_with_the_others() {
    let mut migrations = Migrations::new(HERE);
    let moves = [one_move(1, 0, 1), one_move(2, 2, 1)];
    assert_eq!(migrations.begin(SYNC, &moves, cell), [switch(&[])]);
    assert_eq!(migrations.receive(transfer(2)), None);
    assert_eq!(migrations.drained(), []);
    assert_eq!(migrations.receive(transfer(1)), Some(flushed(20)));
    assert!(migrations.expects(chunk(1)), "its index is in use until it lands");
    assert_eq!(landed(&mut migrations), [chunk(2), chunk(1)]);
    assert!(!migrations.expects(chunk(1)));
}
