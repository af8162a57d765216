//! Tests that each fault is a line with the place, the field, and what was expected.

use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Field {
    count: u32,
    #[serde(default)]
    kind: Option<Kind>,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Small,
    VeryLarge,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Farm {
    #[serde(default)]
    fields: Vec<Field>,
    owner: Option<Field>,
}

fn read(text: &str) -> Result<Farm, String> {
    let document = Document::parse("farm.toml", text).map_err(|error| error.to_string())?;
    document.read().map_err(|error| error.to_string())
}

#[test]
fn a_fault_names_the_line_the_field_and_the_nearest_name() {
    for (text, expected) in [
        ("\na = ", "farm.toml:2: a: expected a value: a number, a text in quotes"),
        ("\na.b = small # old", "farm.toml:2: a.b: expected a value: a number, a text in quotes"),
        ("a", "farm.toml:1: key with no value, expected `=`"),
        (
            "\n[[fields]]\ncount = 1\n[[fields]]\ncount = 2\nkind = \"big\"",
            "farm.toml:6: fields[1].kind: unknown value \"big\";",
        ),
        ("owner = { count = 1, cuont = 2 }", "farm.toml:1: owner.cuont: unknown field, did you mean count?"),
        (
            "[owner]\ncount = \"x\"",
            "farm.toml:2: owner.count: \"x\", expected a whole number from 0 to 4294967295",
        ),
        ("\n[owner]\nkind = \"small\"", "farm.toml:2: owner.count: it is missing"),
        ("[[fields]]\ncount = [1]", "farm.toml:2: fields[0].count: a list, expected a whole number"),
        ("filds = 3", "farm.toml:1: filds: unknown field, did you mean fields?"),
        ("count = 3", "farm.toml:1: count: unknown field; known: fields, owner"),
        ("[owner]\ncount = 1\nkind = 7", "farm.toml:3: owner.kind: 7, expected one of small, very-large"),
        ("[owner]\ncount = 1\ncount = 2", "farm.toml:3: count: given twice, expected once"),
        ("[owner]\ncount = 1\n[[owner]]", "farm.toml:3: "),
        (
            "[[owner]]\ncount = 1",
            "farm.toml:1: owner: a list of tables, expected one table, with its name in single",
        ),
        ("\"a\\nb\" = 5", "farm.toml:1: a\\nb: unknown field; known"),
        ("owner = 5", "farm.toml:1: owner: 5, expected a table"),
        ("fields = 5", "farm.toml:1: fields: 5, expected a list or [[tables]]"),
        ("owner.name = true", "farm.toml:1: owner.name: true, expected a text in quotes"),
        ("owner.name = 1.5", "farm.toml:1: owner.name: 1.5, expected a text in quotes"),
        ("owner.kind = true", "farm.toml:1: owner.kind: true, expected one of small"),
    ] {
        let line = read(text).expect_err(text);
        assert!(line.starts_with(expected), "{line:?} instead of {expected:?}");
        assert_eq!(line.lines().count(), 1, "{line:?}");
    }
}

#[test]
fn integers_may_have_another_radix() {
    for (text, count) in
        [("0xff", 255), ("0o17", 15), ("0b101", 5), ("1_000", 1000), ("+7", 7), ("0xFF_FF", 65_535)]
    {
        let farm = read(&format!("owner.count = {text}"));
        assert_eq!(farm.map(|farm| farm.owner.map(|owner| owner.count)), Ok(Some(count)), "{text}");
    }
    let line = read("owner.count = 0xfffffffff").unwrap_err();
    assert!(
        line.starts_with("farm.toml:1: owner.count: ") && line.contains("expected a whole number"),
        "{line}"
    );
}

#[test]
fn options_replace_fields_and_are_named_in_faults() {
    let mut document = Document::parse("farm.toml", "[[fields]]\ncount = 1\n").unwrap();
    let mut set = |field: &str, value: &str| {
        let place = Place::Option(format!("--set {field}={value}").into());
        document.set(field, option_value(value, &place))
    };
    set("fields[0].kind", "very-large").unwrap();
    set("fields.count", "5").unwrap();
    set("owner.count", "6").unwrap();
    assert_eq!(set("fields[1].count", "1").unwrap_err(), "[1]: there are 1, counted from [0]");
    assert!(set("owner..count", "1").unwrap_err().contains("is not a field"));
    assert!(set("owner.count.x", "1").unwrap_err().contains("expected no field of a number"));
    let fields = vec![Field { count: 5, kind: Some(Kind::VeryLarge), name: None }];
    assert_eq!(
        document.read::<Farm>().unwrap(),
        Farm { fields, owner: Some(Field { count: 6, kind: None, name: None }) }
    );
    let place = Place::Option("--set owner.cuont=1".into());
    document.set("owner.cuont", option_value("1", &place)).unwrap();
    let line = document.read::<Farm>().unwrap_err().to_string();
    assert_eq!(line, "--set owner.cuont=1: owner.cuont: unknown field, did you mean count?");
}
