// Package papers lists the experiments, those that reproduce a paper and this project's own, and runs one by name.
package papers
