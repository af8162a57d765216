//! Tests the readers with small files as other programs write them.

use super::*;

const WATER: &str = "\
HEADER    WATER
CRYST1   20.000   21.500   22.000  90.00  90.00  90.00 P 1           1
ATOM      1  OH2 TIP3W   1      -1.500   2.250  10.000  1.00  0.00      WT1
ATOM      2  H1 ATIP3W   1      -0.543   2.250  10.000  1.00  0.00      WT1
ATOM      3  H1 BTIP3W   1      -0.500   2.250  10.000  1.00  0.00      WT1
ATOM      3  H1 CTIP3W   1      -0.400   2.250  10.000  1.00  0.00      WT1
TER
HETATM    4  H2  TIP3W   1    -100.740-103.177  10.000
ENDMDL
ATOM      1  nonsense of the second model
";

const ARGON: &str = "2\nLattice=\"9 0 0 0 9.5 0 0 0 1e1\" by hand\nAr 1 2 3\n Ar  -1.5 2e-1 3 0.5\n\n";

fn xyz(text: impl AsRef<[u8]>) -> Result<Structure, Fault> {
    parse(Format::Xyz, text.as_ref(), 1)
}

fn pdb(text: impl AsRef<[u8]>) -> Result<Structure, Fault> {
    parse(Format::Pdb, text.as_ref(), 1)
}

/// Two atoms of argon below this comment.
fn argon(comment: &str) -> Result<Structure, Fault> {
    xyz(format!("2\n{comment}\nAr 1 1 1\nAr 3 1 1\n"))
}

/// The records of a PDB file with atoms given as `serial name letter residue number x`.
fn records(atoms: &[&str]) -> String {
    let record = |atom: &&str| {
        let words: Vec<&str> = atom.split(' ').collect();
        let [serial, name, letter, residue, number, x] = words[..] else { return format!("{atom}\n") };
        let letter = letter.replace('_', " ");
        format!(
            "ATOM  {serial:>5}  {name:<3}{letter}{residue:>3} A{number:>4}    {x:>8}   1.000   1.000  1.00\n"
        )
    };
    atoms.iter().map(record).collect()
}

/// The first coordinates of the atoms that count, and how many positions were left out.
fn first(atoms: &[&str]) -> (Vec<f64>, usize) {
    let structure = pdb(records(atoms)).unwrap();
    (structure.positions.iter().map(|position| position[0]).collect(), structure.alternatives)
}

#[test]
fn a_file_has_positions_and_perhaps_a_box() {
    let structure = pdb(WATER).unwrap();
    assert_eq!(structure.positions, [[-1.5, 2.25, 10.0], [-0.543, 2.25, 10.0], [-100.74, -103.177, 10.0]]);
    assert_eq!(structure.sides, Some([20.0, 21.5, 22.0]));
    assert_eq!((structure.alternatives, structure.elsewhere, structure.frames), (2, 1, 2));
    let structure = xyz(ARGON).unwrap();
    assert_eq!(structure.positions, [[1.0, 2.0, 3.0], [-1.5, 0.2, 3.0]]);
    assert_eq!(structure.sides, Some([9.0, 9.5, 10.0]));
    assert_eq!(xyz("1\n\nC 0 0 0").unwrap().sides, None);
    assert_eq!(xyz("\u{feff}1\r\n\r\nC 0 0 0d0\r\n").unwrap().positions, [[0.0; 3]]);
}

#[test]
fn a_record_that_is_wrong_is_named_by_its_line_and_what_it_has() {
    let refused = |parse: &dyn Fn(&str) -> Result<Structure, Fault>, text: &str, from: &str, to: &str| {
        assert!(text.contains(from));
        parse(&text.replacen(from, to, 1)).unwrap_err().to_string()
    };
    for (from, to, expected) in [
        ("2\n", "two\n", "line 1: expected the number of atoms, 1 or more, found `two`"),
        ("2\n", "0\n", "line 1: expected the number of atoms, 1 or more, found `0`"),
        ("2\n", "3\n", "line 5: expected an element and three coordinates up to 1e6, found ``"),
        (
            "3 0.5\n\n",
            "3 0.5\nAr 1 2 3",
            "line 5: expected the number of atoms of frame 2, or the end of the file, found",
        ),
        (
            "3 0.5\n\n",
            "3 0.5\n2\n\nAr 1 2 3\n\n1\n",
            "line 8: expected a comment and 2 atoms after line 5, found ``",
        ),
        (
            "3 0.5\n\n",
            "3 0.5\n3\n\nAr 1 2 3",
            "line 8: expected a comment and 3 atoms after line 5, found the end",
        ),
        (
            "\n Ar  -1.5 2e-1 3 0.5\n\n",
            "",
            "line 4: expected 2 atoms, of which there are 1, found the end of the file",
        ),
        ("2\n", "1\n", "line 4: expected the number of atoms of frame 2, or the end of the file, found ` Ar"),
        ("0 9.5", "1 9.5", "line 2: expected a box with right angles, as in Lattice="),
        ("9.5", "-9.5", "line 2: expected a box with sides above 0 and up to 1e6, as in Lattice="),
        ("9.5", "0", "a box with sides above 0 and up to 1e6"),
        ("9.5", "1000001", "a box with sides above 0 and up to 1e6"),
        ("9.5", "1e300", "a box with sides above 0 and up to 1e6"),
        ("9.5", "inf", "a box with right angles"),
        ("1e1\"", "\"", "right angles"),
        ("1e1\"", "1e1", "right angles"),
        ("by hand", "Properties=species:S:1:id:I:1", "line 2: expected columns with one position"),
        (
            "by hand",
            "Properties=species:S:1:pos:R:3",
            "line 4: expected 4 columns, as Properties says, not 5, found",
        ),
        ("Ar 1 2 3", "Ar 1 2", "line 3: expected an element and three coordinates up to 1e6, found `Ar 1 2`"),
        ("Ar 1 2 3", "1 2 3", "line 3: expected an element and three"),
        ("-1.5", "1e7", "line 4: expected an element and three coordinates up to 1e6, found ` Ar  1e7"),
        ("-1.5", "NaN", "up to 1e6"),
    ] {
        let line = refused(&|text| xyz(text), ARGON, from, to);
        assert!(line.contains(expected) && !line.contains('\n'), "{to}: {line}");
    }
    for (from, to, expected) in [
        (
            "-1.500",
            "-1,500",
            "line 3: expected three coordinates up to 1e6 in columns 31 to 54, found `ATOM      1",
        ),
        ("-103.177  10.000", "-103", "line 8: expected three coordinates up to 1e6 in columns 31 to 54"),
        ("H1 A", "Hé A", "line 4: expected ASCII in a record of an atom"),
        ("  20.000", "   0.000", "line 2: expected sides of the box above 0"),
        ("  20.000", "  twenty", "line 2: expected three sides up to 1e6"),
        ("  90.00 P", "  60.00 P", "line 2: expected right angles"),
        ("HETATM", "hetatm", "line 8: expected ATOM or HETATM in columns 1 to 6, found `hetatm"),
        ("ATOM      2 ", "ATOM      2x", "line 4: expected a blank in column 12"),
        ("   1      -1.500", "   1   77 -1.500", "line 3: expected blanks in columns 29 and 30"),
        (
            "TER\nHETATM",
            "CRYST1   30.000   21.500   22.000  90.00  90.00  90.00\nHETATM",
            "line 7: expected one box for a model",
        ),
    ] {
        let line = refused(&|text| pdb(text), WATER, from, to);
        assert!(line.contains(expected) && !line.contains('\n'), "{to}: {line}");
    }
    assert_eq!(
        pdb("HEADER\nEND\n").unwrap_err().to_string(),
        "line 3: expected an ATOM or HETATM record before the end, found the end of the file"
    );
    assert!(xyz("").unwrap_err().to_string().starts_with("line 1: expected the number of atoms"));
}

#[test]
fn the_box_and_the_columns_of_extended_xyz_are_pairs_however_they_are_written() {
    for comment in [
        r#"Lattice="20 0 0 0 20 0 0 0 20" Properties=species:S:1:pos:R:3"#,
        r#"Lattice='20 0 0 0 20 0 0 0 20' Properties='species:S:1:pos:R:3'"#,
        r#"lattice = "20 0 0 0 20 0 0 0 20" PROPERTIES= species:s:1:POS:r:3"#,
        r#""Lattice"="20 0 0 0 20 0 0 0 20""#,
        r#"Lattice=[20, 0, 0, 0, 20, 0, 0, 0, 20] pbc="T T T""#,
        r#"Lattice=[[20,0,0],[0,20,0],[0,0,20]] name="it's 5\" wide""#,
        r#"title='a "b" c' Lattice={20 20 20} energy=-1.5"#,
        r#"Lattice="20 0 0 1.2e-15 20 0 1.2e-15 1.2e-9 20""#,
        r#"don't worry Lattice="2D1 0 0 0 20 0 0 0 20""#,
    ] {
        let structure = argon(comment).unwrap_or_else(|fault| panic!("{comment}: {fault}"));
        assert_eq!(structure.sides.map(|sides| sides.map(f64::round)), Some([20.0; 3]), "{comment}");
        let others = ["energy", "name"].iter().any(|key| comment.contains(key));
        assert_eq!((structure.positions.len(), structure.notes.len()), (2, others.into()), "{comment}");
    }
    let text = "1\nproperties=id:I:1:pos:R:3:species:S:1\n7 1 2 3 Ar\n";
    assert_eq!(xyz(text).unwrap().positions, [[1.0, 2.0, 3.0]]);
}

#[test]
fn what_looks_like_a_box_or_columns_and_cannot_be_read_is_refused() {
    for (comment, expected) in [
        ("Lattice=\"20 0 0 0 20 0 0 0\"", "a box with right angles"),
        ("Lattice=\"20 0 0 0 20 0 0 1e-7 20\"", "a box with right angles"),
        ("Lattice=20 0 0 0 20 0 0 0 20", "a box with right angles"),
        ("Lattice: 20 0 0 0 20 0 0 0 20", "a box with right angles"),
        ("Lattice=", "a box with right angles"),
        ("Lattice='20 20 20' lattice='30 30 30'", "a box with right angles"),
        ("note=\"never closed Lattice=\"20 20 20\"", "a box with right angles"),
        ("a=b,Lattice=\"20 20 20\"", "a box with right angles"),
        ("# CELL(abcABC): 20.0 20.0 20.0 90.0 90.0 90.0", "a box with right angles"),
        ("box = [20, 20, 20]", "a box with right angles"),
        ("Properties=", "columns with one position"),
        ("Properties=species:S:1", "columns with one position"),
        ("Properties=species:S:1:pos:R:2", "columns with one position"),
        ("Properties=species:S:1:pos:R:3:pos:R:3", "columns with one position"),
        ("Properties=species:S:1:pos:R:3:forces", "columns with one position"),
        ("Properties: species:S:1:pos:R:3", "columns with one position"),
    ] {
        let fault = argon(comment).expect_err(comment);
        assert!(fault.line == 2 && fault.expected.starts_with(expected), "{comment}: {fault}");
    }
    for comment in [
        "",
        "a box of argon",
        "graphite lattice",
        "properties of 2 atoms",
        "cell 3 of 4",
        "'x = y",
        "= ==",
        "= 3",
        "1 = 2",
        "Jörg",
    ] {
        let structure = argon(comment).unwrap_or_else(|fault| panic!("{comment}: {fault}"));
        assert_eq!((structure.sides, structure.notes.len()), (None, 0), "{comment}");
    }
    assert!(xyz(b"1\nJ\xfcrg\nC 0 0 0\n").is_ok(), "a comment in Latin-1");
}

#[test]
fn what_an_xyz_file_has_and_is_not_used_is_told() {
    let notes = |text: &str| xyz(text).unwrap().notes.join("; ");
    let columns = "atoms with columns after the coordinates, which no Properties name and which are not read: 1, the first in line 4";
    assert_eq!(notes(ARGON), columns);
    assert!(notes("1\nLattice='9 9 9' pbc='T T F'\nC 0 0 0\n").starts_with("line 2: pbc names an axis"));
    assert!(notes("1\n20 20 20 90 90 90\nC 0 0 0\n").starts_with("line 2: the comment has numbers"));
}

#[test]
fn columns_and_keys_that_are_not_read_are_told_by_name() {
    let notes = |comment: &str, line: &str| xyz(format!("1\n{comment}\n{line}\n")).unwrap().notes;
    let properties = "Lattice='9 9 9' pbc='T T T' Properties=species:S:1:pos:R:3";
    assert_eq!(notes(properties, "Ar 1 2 3"), [""; 0]);
    for name in ["velo", "vel", "velocities", "masses"] {
        assert_eq!(
            notes(&format!("{properties}:{name}:R:3:id:I:1"), "Ar 1 2 3 4 5 6 7"),
            [format!("line 2: columns that Properties names and that are not read: `{name}`, `id`")]
        );
    }
    let told = "line 2: keys of the comment that are not read: ";
    for (comment, keys) in [
        ("Latice='20 0 0 0 20 0 0 0 20'", "`Latice`"),
        ("Lattice='20 0 0 0 20 0 0 0 20' Origin='1 1 1'", "`Origin`"),
        ("energy=-1.5 virial=\"1 2 3\" by hand", "`energy`, `virial`"),
        ("a=1 b=1 c=1 d=1 e=1 f=1 g=1", "`a`, `b`, `c`, `d`, `e` and 2 more"),
        ("pbc='T T T'", "`pbc`"),
    ] {
        assert_eq!(notes(comment, "Ar 1 2 3"), [format!("{told}{keys}")], "{comment}");
    }
}

#[test]
fn a_model_that_does_not_end_is_told() {
    let one = ["MODEL 1", "1 C _ ALA 1 1.0", "ENDMDL"];
    let notes = |lines: &[&str]| pdb(records(lines)).unwrap().notes;
    let told = |line: usize| {
        [format!("MODEL records without ENDMDL, so the file may be cut off: 1, the first in line {line}")]
    };
    assert_eq!(notes(&one[..2]), told(1));
    assert_eq!(notes(&[&one[..2], &["END"]].concat()), told(1));
    assert_eq!(notes(&[&one[..2], &one].concat()), told(1));
    assert_eq!(notes(&[&one[..], &one[..2]].concat()), told(4));
    assert_eq!(notes(&[&one[..], &one, &["END"]].concat()), [""; 0]);
    assert_eq!(notes(&one[1..]), [""; 0], "an ENDMDL alone");
}

#[test]
fn a_trajectory_has_frames_of_which_one_is_read() {
    let text = "1\none\nC 1 0 0\n2\n\nC 2 0 0\nC 3 0 0\n\n1\nthree\nC 4 0 0\n\n";
    let read = |frame| {
        parse(Format::Xyz, text.as_bytes(), frame).map(|structure| {
            let first: Vec<f64> = structure.positions.iter().map(|position| position[0]).collect();
            (first, structure.elsewhere, structure.frames)
        })
    };
    assert_eq!(read(1), Ok((vec![1.0], 3, 3)));
    assert_eq!(read(2), Ok((vec![2.0, 3.0], 2, 3)));
    assert_eq!(read(3), Ok((vec![4.0], 3, 3)));
    let line = read(4).unwrap_err().to_string();
    assert_eq!(line, "line 13: expected frame 4, found the end of the file after 3 frames");
    let models =
        records(&["MODEL 1", "1 C _ ALA 1 1.0", "ENDMDL", "MODEL 2", "1 C _ ALA 1 2.0", "ENDMDL", "END"]);
    let second = parse(Format::Pdb, models.as_bytes(), 2).unwrap();
    assert_eq!((second.positions[0][0], second.elsewhere, second.frames), (2.0, 1, 2));
    let line = parse(Format::Pdb, models.as_bytes(), 3).unwrap_err().to_string();
    assert_eq!(line, "line 8: expected model 3, found the end of the file after 2 models");
}

#[test]
fn a_serial_number_of_six_digits_costs_no_atom() {
    let standard = "ATOM  99999  CA  GLY A   1       3.000   1.000   1.000  1.00  0.00\n";
    for serial in
        ["ATOM 100000 ", "ATOM  100000 ", "HETATM100000 ", "ATOM  1000000 ", "ATOM  ***** ", "HETATMA0000 "]
    {
        let structure =
            pdb(standard.replace("ATOM  99999 ", serial)).unwrap_or_else(|fault| panic!("{serial}: {fault}"));
        assert_eq!((structure.positions, structure.notes.len()), (vec![[3.0, 1.0, 1.0]], 0), "{serial}");
    }
}

#[test]
fn numbers_of_residues_that_begin_again_are_other_residues() {
    let waters = [
        "1 O A HOH 1 1.0",
        "TER",
        "2 O B HOH 1 2.0",
        "3 O A HOH 2 3.0",
        "4 O A HOH 1 4.0",
        "5 O A HOH 1 5.0",
    ];
    assert_eq!(first(&waters), (vec![1.0, 2.0, 3.0, 4.0, 5.0], 0));
    // All of one number, and none with a letter.
    let waters = ["1 O _ HOH 0 1.0", "2 H1 _ HOH 0 2.0", "3 O _ HOH 0 3.0", "4 H1 _ HOH 0 4.0"];
    assert_eq!(first(&waters), (vec![1.0, 2.0, 3.0, 4.0], 0));
}

#[test]
fn an_atom_has_one_position_whatever_the_letters_and_residues_of_the_others() {
    assert_eq!(first(&["1 N _ SER 22 1.0", "2 N B SER 22 1.1", "3 CA _ SER 22 2.0"]), (vec![1.0, 2.0], 1));
    let interleaved = ["1 N A SER 22 1.0", "2 N B THR 22 1.0", "3 OG A SER 22 2.0", "4 CG2 B THR 22 2.1"];
    assert_eq!(first(&interleaved), (vec![1.0, 2.0], 2));
    let in_blocks = ["1 N A SER 22 1.0", "3 OG A SER 22 2.0", "2 N B THR 22 1.0", "4 CG2 B THR 22 2.1"];
    assert_eq!(first(&in_blocks), (vec![1.0, 2.0], 2));
    // An atom that only the second alternative has is no second position.
    assert_eq!(first(&["1 N A SER 22 1.0", "2 N B SER 22 1.1", "3 HG B SER 22 2.0"]), (vec![1.0, 2.0], 1));
    // Two residues under one number.
    assert_eq!(
        first(&["1 C1 _ LIG 9 1.0", "2 C2 _ LIG 9 2.0", "3 O1 _ EDO 9 3.0"]),
        (vec![1.0, 2.0, 3.0], 0)
    );
    let notes = pdb(records(&interleaved)).unwrap().notes;
    let expected =
        "further positions of atoms that have several, of which the first counts: 2, the first in line 2";
    assert_eq!(notes, [expected]);
}

#[test]
fn sides_that_are_all_0_or_all_1_say_that_there_is_no_crystal() {
    let atom = records(&["1 C _ ALA 1 1.0"]);
    for sides in ["    0.000    0.000    0.000", "    1.000    1.000    1.000"] {
        let text = format!("CRYST1{sides}  90.00  90.00  90.00 P 1           1\n{atom}");
        assert_eq!(pdb(text).unwrap().sides, None);
    }
    let text = format!("CRYST1    9.000    9.000    0.000  90.00  90.00  90.00\n{atom}");
    assert!(pdb(text).unwrap_err().expected.starts_with("sides of the box above 0"));
}

#[test]
fn records_that_are_left_out_are_told() {
    let text =
        records(&["REMARK any text", "1 C _ ALA 1 1.0", "WATERS 7", "ROOT", "MTRIX1   2  0 1 0", "CONECT 1"]);
    let notes = pdb(text).unwrap().notes;
    assert_eq!(
        notes,
        [
            "MTRIX records of copies by symmetry, which are not made: 1, the first in line 5",
            "records that PDB does not have, which are not read: 2, the first in line 3"
        ]
    );
}
