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
};
