/* Pages before names of the Python library: whoever searches "epsilon" wants what it means first. */
var Scorer = {
  objNameMatch: 4,
  objPartialMatch: 1,
  objPrio: { 0: 0, 1: 0, 2: -3 },
  objPrioDefault: 0,
  title: 25,
  partialTitle: 12,
  term: 5,
  partialTerm: 2,
  // The page of all measurements has a heading for everything: explanations come before it.
  score: (result) => (result[0] === "reference/benchmarks" ? result[4] / 2 : result[4]),
};
