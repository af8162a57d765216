//! The cities of the tours, and the shortest tour through all of them by Held's and Karp's recursion over sets of cities.

use rand::RngExt;

pub(super) const CITIES: usize = 8;

/// By pair of cities.
pub(super) struct Distances(Vec<Vec<u32>>);

impl Distances {
    pub(super) fn new() -> Distances {
        let place = |city| {
            let mut random = caribou::random::stream(1, city);
            [random.random_range(0..100), random.random_range(0..100_i32)]
        };
        let places: Vec<[i32; 2]> = (0..CITIES as u64).map(place).collect();
        let distance = |a: [i32; 2], b: [i32; 2]| f64::from(a[0] - b[0]).hypot(f64::from(a[1] - b[1])) as u32;
        Distances(places.iter().map(|&a| places.iter().map(|&b| distance(a, b)).collect()).collect())
    }

    /// The length of a way through these cities.
    fn length(&self, way: &[usize]) -> u32 {
        way.windows(2).map(|leg| self.0[leg[0]][leg[1]]).sum()
    }

    /// The length of the round trip through all cities.
    pub(super) fn cost(&self, tour: &[usize]) -> u32 {
        self.length(tour) + tour.last().map_or(0, |&last| self.0[last][tour[0]])
    }

    /// No round trip that begins so is shorter: a city that is not left yet is left for its nearest.
    pub(super) fn bound(&self, tour: &[usize]) -> u32 {
        let nearest = |a: usize| (0..CITIES).filter(|&b| b != a).map(|b| self.0[a][b]).min().unwrap_or(0);
        self.length(tour) + others(tour).into_iter().chain(tour.last().copied()).map(nearest).sum::<u32>()
    }
}

/// The cities that a tour has not been to.
pub(super) fn others(tour: &[usize]) -> Vec<usize> {
    (0..CITIES).filter(|city| !tour.contains(city)).collect()
}

/// Its length and its cities.
type TourLength = (u32, Vec<usize>);

/// The shortest round trip from city 0, of several the first in lexicographic order.
pub(super) fn serial() -> TourLength {
    let distances = Distances::new();
    // By set of cities and last city: the best way through them.
    let mut best: Vec<Vec<Option<TourLength>>> = vec![vec![None; CITIES]; 1 << CITIES];
    best[1][0] = Some((0, vec![0]));
    for set in 1..1 << CITIES {
        for last in 0..CITIES {
            let Some((_, way)) = best[set][last].clone() else { continue };
            for next in others(&way) {
                let longer = [&way[..], &[next]].concat();
                let candidate = Some((distances.length(&longer), longer));
                let known = &mut best[set | 1 << next][next];
                if known.is_none() || candidate < *known {
                    *known = candidate;
                }
            }
        }
    }
    let all = best[(1 << CITIES) - 1].iter().flatten();
    all.map(|(_, tour)| (distances.cost(tour), tour.clone())).min().unwrap_or_default()
}
