/**
 * Whether integers keep an epsilon: exact, in whole numbers, the same in every language.
 *
 * e^x  >=  sum of x^k / k!, k = 0 .. 320        (all terms are positive, so the sum is a lower bound)
 */

/** 2^64, the number of words that a draw may meet; 2^256 for a digit of a degree. */
export const WORD = 1n << 64n;
export const DIGIT = 1n << 256n;
/** The largest epsilon that a threshold of 64 bits can be told from: e^44 < 2^64. */
const LARGEST = 44n;

/** Return whether likely / rare <= e^(epsilon / parts), for certain; an epsilon is in billionths, and 44 at most counts. */
export function keeps(likely: bigint, rare: bigint, epsilon: bigint, parts = 1): boolean {
  const [above, below] = leastExp(epsilon, BigInt(parts) * 10n ** 9n);
  return rare > 0n && likely * below <= rare * above;
}

/**
 * Return whether the difference of two numbers with these random binary digits hides a change of 1 at epsilon.
 *
 * From k to k + 1 a number's probability changes by o_i / (o_0 ... o_(i-1)), where i is the lowest digit that is 0 in
 * k, o its odds of being 1; the overflow takes the place of the digit after the last.  Each of these must lie within
 * e^-epsilon and 1.
 */
export function digitsKeep(digits: readonly bigint[], overflow: bigint, epsilon: bigint): boolean {
  const [above, below] = leastExp(epsilon, 10n ** 9n);
  const within = (numerator: bigint, denominator: bigint) =>
    numerator <= denominator && numerator * above >= denominator * below;
  // The odds of all lower digits being 1: ones / zeros.
  let ones = 1n;
  let zeros = 1n;
  return (
    [...digits, overflow].every((digit) => digit > 0n && digit < DIGIT / 2n) &&
    digits.every((digit) => {
      const kept = within(digit * zeros, (DIGIT - digit) * ones);
      ones *= digit;
      zeros *= DIGIT - digit;
      return kept;
    }) &&
    within(overflow * zeros, DIGIT * ones)
  );
}

/** A fraction of at most e^epsilon, short of it by less than 1 part in 2^200. */
function leastExp(numerator: bigint, denominator: bigint): [above: bigint, below: bigint] {
  if (numerator > LARGEST * denominator) return leastExp(LARGEST, 1n);
  // Horner from the last term, over one denominator: whole numbers alone.
  let above = 1n;
  let below = 1n;
  for (let k = 320n; k; k--) {
    below *= k * denominator;
    above = below + above * numerator;
  }
  return [above, below];
}
