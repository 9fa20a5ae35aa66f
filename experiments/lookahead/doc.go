// Package lookahead is the study lookahead: what agents and searches gain over the best rules, on windows that nothing
// was tuned on, and how much there is to gain.
package lookahead
