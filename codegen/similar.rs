//! Finds the word that somebody may have meant.

/// `; did you mean X?` with the known word that is nearest to one that is not known; nothing where none is
/// near.
pub fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = known
        .into_iter()
        .map(|known| (distance(word, known), known))
        .filter(|(distance, known)| *distance <= 2 && *distance * 3 <= known.chars().count())
        .min();
    near.map_or(String::new(), |(_, known)| {
        format!("; did you mean `{known}`?")
    })
}

/// How many letters are to be put in, left out, exchanged or swapped with the next one.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // By how many letters of the first: the distances to all beginnings of the second.
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let exchanged = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = exchanged.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            let swaps = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
            if swaps {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}
