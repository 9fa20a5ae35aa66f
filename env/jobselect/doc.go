// Package jobselect assembles JobSelect-v1: an agent decides which of K visible jobs starts now, or waits, and a
// heuristic picks GPUs that are close to each other. It is the decision process of TopDRL (Ayadi et al., JPDC 204,
// 2025), reconstructed from the paper's abstract and from the code of its precursor (Deng et al., Canadian AI 2024);
// Page describes it in full.
package jobselect
