//! Settings as they are parsed, and the errors of wrong ones.

use lb_strategies::{ARRAYS, Assignment, Entry, POOLS, SUPERSTEPS, Shape, Snapshot, Strategy, Terms};

use super::*;

fn set(name: &str, value: &str) -> Result<Config, Error> {
    Config::from_variables([(name.to_owned(), value.to_owned())])
}

#[test]
fn every_documented_variable_is_understood() {
    for variable in VARIABLES {
        let config = set(variable.name, variable.example).unwrap_or_else(|error| panic!("{error}"));
        assert_ne!(format!("{config:?}"), format!("{:?}", Config::default()), "{}", variable.name);
    }
}

#[test]
fn a_default_that_is_a_value_is_the_default() {
    let values = VARIABLES.iter().filter(|variable| set(variable.name, variable.default).is_ok());
    // `unset` would be accepted as a directory or a host.
    let values: Vec<_> = values.filter(|variable| variable.default != "unset").collect();
    assert_eq!(values.len(), 17, "{values:?}");
    assert_eq!(Config::default().balanced(), Period::Auto);
    for variable in values {
        let config = set(variable.name, variable.default).expect("it is a value");
        assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()), "{}", variable.name);
    }
}

#[test]
fn the_page_of_settings_has_a_row_for_each_variable() {
    let page = include_str!("../../../docs/settings.md");
    for Variable { name, default, meaning, .. } in VARIABLES {
        let row = format!("| `{name}` | {default} | {meaning} |");
        assert!(page.contains(&row), "there is no row {row}");
    }
}

#[test]
fn an_unknown_variable_suggests_the_nearest() {
    let error = set("CARIBOU_RANK", "2").expect_err("there is no such variable");
    assert!(error.to_string().contains("CARIBOU_RANKS?"), "{error}");
    let error = set("CARIBOU_FOO", "2").expect_err("there is no such variable").to_string();
    assert!(!error.contains("did you mean") && error.contains("RANKS, WORKERS, LB"), "{error}");
    assert!(set("CARGO_HOME", "2").is_ok());
}

#[test]
fn an_empty_variable_counts_as_unset() {
    for Variable { name, .. } in VARIABLES {
        let config = set(name, " ").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()), "{name}");
    }
    assert!(set("CARIBOU_FOO", "").is_err());
}

#[test]
fn a_strategy_is_registered_under_a_name_that_selects_it_alone() {
    let refine = *ARRAYS.find("refine").expect("it is ours");
    let named = |name| Entry { name, ..refine };
    let registered = |names: &[&'static str]| {
        let config =
            names.iter().fold(Config::default(), |config, name| config.register_strategy(named(name)));
        config.changed_by([]).map_err(|error| error.to_string())
    };
    // It may replace a built-in one.
    assert!(registered(&["mine", "refine"]).is_ok());
    for (names, why) in [
        (&["mine", "mine"][..], "two strategies"),
        (&["mine,how=1"], "is not a valid name"),
        (&["help"], "is not a valid name"),
        (&["leases"], "a policy for pools"),
    ] {
        let error = registered(names).expect_err("it could not be selected");
        assert!(error.starts_with("register_strategy: ") && error.contains(why), "{error}");
    }
    let pool = Entry { name: "refine", ..*POOLS.find("static").expect("it is ours") };
    assert!(Config::default().register_pool_strategy(pool).lb("none").is_err());
    let steps = Entry { name: "refine", ..*SUPERSTEPS.find("equal").expect("it is ours") };
    assert!(Config::default().register_superstep_strategy(steps).lb("none").is_err());
}

#[test]
fn a_simulated_run_is_one_process() {
    let second = Launch::Together { process: 1, processes: 2 };
    let error = simulated(Some(7), second).expect_err("both would run it").to_string();
    assert!(error.starts_with("CARIBOU_SIMULATE: ") && error.contains("process 1 of 2"), "{error}");
    assert_eq!(simulated(Some(7), Launch::Alone), Ok(Some(7)));
    assert_eq!(simulated(None, second), Ok(None));
    assert_eq!(set("CARIBOU_SIMULATE", "18446744073709551615").expect("a seed").simulate, Some(u64::MAX));
    let config = Config::default().trace("traces").spot(Spot::auto()).slowed(1, 2.0);
    let said: Vec<_> = config.unsimulated().collect();
    assert!(
        said[0].contains("CARIBOU_TRACE")
            && said[1].contains("CARIBOU_SPOT")
            && said[2].contains("Config::slowed"),
        "{said:?}"
    );
    assert_eq!(Config::default().unsimulated().count(), 0);
}

#[test]
fn a_bad_value_says_what_was_expected() {
    for (name, value, expected) in [
        ("CARIBOU_RANKS", "0", "at least 1"),
        ("CARIBOU_RANKS", "x", "from 1 to"),
        ("CARIBOU_WIRE", "yes", "auto, always"),
        ("CARIBOU_LB", "refine,tolerence=1", "tolerance"),
    ] {
        let error = set(name, value).expect_err("the value is bad").to_string();
        assert!(error.starts_with(name) && error.contains(expected), "{error}");
    }
}

#[test]
fn help_lists_the_strategies_of_the_shape_that_is_run() {
    let config = set("CARIBOU_LB", " help").expect("no shape is known yet");
    assert!(config.asks_lb_help() && !Config::default().asks_lb_help());
    for (shape, expected) in [
        (
            Shape::Arrays,
            "CARIBOU_LB: for arrays of chunks, as NAME[,KEY=VALUE]... (default: refine):\n\nnone ",
        ),
        (
            Shape::Supersteps,
            "CARIBOU_LB: for programs in supersteps, as NAME[,KEY=VALUE]... (default: des):\n\nequal ",
        ),
    ] {
        let error = config.check_shape(shape).expect_err("nothing is run").to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(!config.lb("des").expect("ours").asks_lb_help(), "an option wins");
}

#[test]
fn settings_without_effect_on_a_shape_are_told() {
    let config = Config::default().period(7).measure(false);
    let told = |shape| config.without_effect(shape).collect::<Vec<_>>();
    assert_eq!(told(Shape::Supersteps), ["CARIBOU_LB_PERIOD", "CARIBOU_MEASURE"]);
    assert_eq!((told(Shape::Pools), told(Shape::Arrays)), (told(Shape::Supersteps), vec![]));
    let told = |shape| Config::default().mail_limit(7).without_effect(shape).count();
    assert_eq!([Shape::Arrays, Shape::Supersteps, Shape::Pools].map(told), [0, 0, 1]);
}

#[test]
fn numbers_that_no_run_can_have_are_refused() {
    let two = || Config::default().ranks(2).workers(1);
    for (config, expected) in [
        (Config::default().ranks(0), "ranks: 0 is too few"),
        (Config::default().workers(0), "workers: 0 is too few"),
        (two().slowed(2, 2.0), "slowed: rank 2 does not exist, the run has 2 ranks"),
        (two().slowed(1, -2.0), "slowed: rank 1 cannot be -2 times slower"),
        (two().slowed(1, f64::NAN), "slowed: rank 1 cannot be NaN times slower"),
        (Config::default().simulate(1).ranks(u32::MAX), "ranks: 4294967295 ranks x "),
    ] {
        for shape in [Shape::Arrays, Shape::Pools, Shape::Supersteps] {
            let error = config.check_shape(shape).expect_err(expected).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
    assert_eq!(two().slowed(1, 1.5).check_shape(Shape::Arrays), Ok(()));
}

#[test]
fn a_strategy_that_panics_before_the_run_is_named() {
    struct Panics {
        before_the_run: bool,
    }
    impl Strategy for Panics {
        fn name(&self) -> &'static str {
            "panics"
        }
        fn assign(&self, snapshot: &Snapshot) -> Assignment {
            Assignment::current(snapshot)
        }
        fn terms(&self) -> Terms {
            assert!(!self.before_the_run, "asked");
            Terms { moves: false, ..Terms::default() }
        }
    }
    let asked = |before_the_run| Config::default().strategy(Panics { before_the_run }).balance_arrays();
    let Err(error) = asked(true) else { panic!("it was not asked") };
    assert!(error.to_string().starts_with("the strategy `panics`: it panicked before the run: "), "{error}");
    let strategy = asked(false).expect("it answers");
    assert_eq!(strategy.terms(), Terms { moves: false, ..Terms::default() });
}
