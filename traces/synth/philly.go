package synth

// philly is Microsoft's Philly cluster, from September to December 2017: the statistics of the jobs of the public trace
// (Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC 2019; data
// under CC BY 4.0), from the common job table of 71,920 rows, which lacks two virtual clusters. Run times are from all
// rows. Arrivals and sizes are from the 89 days from 24 September on: of the twenty days before, the table only has the
// 66 jobs that were still there when recording began.
//
// A burst is a sequence of jobs of one virtual cluster and size with at most 300 s between them. The four virtual
// clusters with fewer than ten jobs are left out. The beat is a one-minute job on one GPU that cluster 11cb48 submits
// every 600 s; it is 15 % of all jobs. Figures are rounded to three digits.
//
// The users are assumed, because the table does not name them. Each burst belongs to one user, drawn with weight 1/rank
// among the VC's users. A VC has 1.5 times the square root of its bursts as users (some 370 in all).
var philly = profile{
	gap: 107.3,
	hours: [24]float64{
		1.03, 0.98, 1.11, 1.06, 0.86, 1.15, 1.32, 1.42, 1.4, 1.11, 0.91, 0.79,
		0.73, 0.74, 0.71, 0.81, 0.85, 1.02, 0.99, 1.0, 0.91, 1.01, 0.97, 1.12,
	},
	days:    [7]float64{1.03, 1.31, 1.2, 1.21, 1.09, 0.68, 0.49},
	persist: 0.7,
	work: []class{
		{1, []float64{
			1, 21, 30, 44, 52, 61, 67, 73, 89, 174, 298, 521, 741, 1040, 1440, 1730, 2040, 2440,
			2660, 3450, 4960, 6180, 8340, 9220, 10700, 12100, 14300, 20100, 29300, 54300, 69900, 111000, 211000, 377000, 719000,
			1580000, 2730000, 3260000,
		}},
		{2, []float64{
			2, 3, 5, 7, 9, 11, 13, 14, 16, 17, 18, 19, 20, 21, 22, 24, 27, 31,
			42, 116, 23500, 79400, 97300, 113000, 143000, 169000, 200000, 237000, 270000, 349000, 440000, 526000, 853000,
			1400000, 1520000, 2580000, 2580000, 2580000,
		}},
		{4, []float64{
			3, 24, 43, 143, 180, 709, 1480, 4280, 6390, 12500, 16300, 24900, 33300, 47300, 65400, 80000, 88600, 96900,
			118000, 154000, 180000, 197000, 210000, 234000, 270000, 296000, 410000, 454000, 526000, 655000, 853000, 1120000,
			1410000, 2060000, 2640000, 2750000, 2750000, 2750000,
		}},
		{8, []float64{
			1, 9, 32, 69, 82, 416, 963, 2200, 4360, 7180, 12400, 21700, 34800, 64200, 105000, 132000, 162000, 181000,
			204000, 236000, 317000, 411000, 448000, 484000, 514000, 576000, 604000, 689000, 790000, 932000, 1050000, 1780000,
			2130000, 2660000, 2660000, 4630000, 4630000, 4630000,
		}},
		{16, []float64{
			1, 2, 2, 4, 35, 55, 160, 481, 904, 1740, 4320, 10600, 27000, 45700, 53300, 58000, 70400, 96200,
			129000, 164000, 198000, 271000, 308000, 341000, 351000, 439000, 471000, 506000, 534000, 622000, 891000, 1150000,
			1370000, 1710000, 1710000, 1710000, 1710000, 1710000,
		}},
	},
	beat: beat{vc: "11cb48", user: "11cb48-clock", share: 0.1455, every: 600, kept: 0.95, jitter: 1,
		work: []float64{4, 57, 59, 63, 68, 74, 82, 94, 122, 135, 148}},
	multi: []float64{0, 2, 4, 14, 42, 133, 210, 279, 300},
	vcs: []vc{
		{
			name: "6214e9", users: 70, busy: 0.41,
			sizes:  []share{{1, 0.568013}, {2, 0.000696}, {4, 0.002004}, {8, 0.002658}},
			length: []float64{1, 1, 2, 2, 3, 4, 5, 9, 16, 100, 307, 463, 627, 1060},
			gaps:   []float64{0, 1, 3, 7, 14, 25, 37, 159, 300},
			many:   []float64{1, 1, 1, 1, 1, 1, 2, 2, 3, 5, 8, 10, 10, 27},
			few:    []float64{5, 33, 54, 240, 1420, 4390, 36600, 96600, 312000, 477000, 2600000},
			bulk:   []float64{7, 50, 67, 353, 1950, 3440, 5880, 9430, 12700, 16900, 2050000},
			spread: [2]float64{1.05, 0.74},
			tilts:  []tilt{{2, 0.83, 0.07}, {4, -0.47, 0.92}, {8, -0.80, 0.69}},
		},
		{
			name: "b436b2", users: 28, busy: 1.13,
			sizes:  []share{{1, 0.100718}, {2, 4.2e-05}, {4, 0.000932}, {8, 0.000529}, {16, 0.000654}, {24, 2.8e-05}},
			length: []float64{1, 1, 1, 1, 2, 2, 3, 6, 95, 373, 382, 384, 389, 767},
			gaps:   []float64{0, 0, 0, 1, 3, 4, 8, 54, 291},
			many:   []float64{1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 4, 4, 5, 5},
			few:    []float64{3, 48, 64, 404, 2140, 49000, 107000, 138000, 182000, 758000, 768000},
			bulk:   []float64{336, 615, 705, 945, 1370, 1860, 2240, 2480, 2770, 3200, 17400},
			spread: [2]float64{0.43, 0.47},
			tilts:  []tilt{{4, 0.53, 1.38}, {8, -0.02, 0.78}, {16, 0.42, 1.10}},
		},
		{
			name: "11cb48", users: 83, busy: 0.17,
			sizes:  []share{{1, 0.057798}, {2, 0.019693}, {4, 0.000557}, {8, 0.000139}, {16, 0.000264}},
			length: []float64{1, 1, 1, 1, 1, 2, 2, 2, 3, 7, 10, 23, 36, 247},
			gaps:   []float64{0, 0, 1, 5, 38, 147, 217, 281, 300},
			many:   []float64{1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 17},
			few:    []float64{1, 24, 30, 61, 128, 2530, 24100, 56000, 111000, 138000, 1190000},
			bulk:   []float64{11, 68, 82, 104, 656, 9040, 15000, 16100, 20900, 29900, 34600},
			spread: [2]float64{0.99, 0.48},
			tilts:  []tilt{{2, -0.35, 0.76}, {4, 0.36, 1.34}},
		},
		{
			name: "103959", users: 54, busy: 0.37,
			sizes:  []share{{1, 0.02185}, {2, 0.000459}, {4, 0.004593}},
			length: []float64{1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 4, 4, 6, 9},
			gaps:   []float64{0, 0, 1, 4, 23, 164, 231, 290, 299},
			many:   []float64{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 13},
			few:    []float64{9, 64, 80, 141, 305, 11200, 24600, 26600, 31600, 59100, 197000},
			spread: [2]float64{0.61, 0.61},
			tilts:  []tilt{{2, 1.44, 0.42}, {4, 0.30, 0.75}},
		},
		{
			name: "ee9e8c", users: 48, busy: 0.31,
			sizes: []share{{1, 0.008309}, {2, 0.001517}, {4, 0.003702}, {8, 0.005831}, {16, 0.001336}, {24, 1.4e-05},
				{32, 0.000181}, {64, 8.4e-05}, {128, 4.2e-05}},
			length: []float64{1, 1, 1, 1, 1, 1, 2, 2, 3, 5, 9, 18, 27, 53},
			gaps:   []float64{0, 4, 6, 24, 43, 110, 172, 270, 297},
			many:   []float64{1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 4, 6, 10},
			few:    []float64{1, 6, 101, 3540, 26500, 55100, 117000, 170000, 330000, 509000, 574000},
			bulk:   []float64{1, 2, 3, 5, 1220, 23000, 39400, 44700, 46500, 47900, 48200},
			spread: [2]float64{1.14, 1.98},
			tilts:  []tilt{{2, 1.07, 0.48}, {4, -0.15, 0.79}, {8, 0.37, 0.96}, {16, -0.08, 1.08}},
		},
		{
			name: "0e4a51", users: 12, busy: 1.3,
			sizes:  []share{{1, 0.01517}, {2, 0.002282}, {4, 0.002519}},
			length: []float64{1, 7, 13, 14, 15, 27, 30, 117, 117, 124, 250, 250, 250, 250},
			gaps:   []float64{0, 3, 4, 4, 6, 10, 17, 42, 141},
			many:   []float64{1, 1, 2, 7, 9, 11, 15, 19, 22, 35, 118, 118, 118, 118},
			few:    []float64{70, 137, 167, 188, 221, 304, 5480, 88800, 215000, 230000, 258000},
			bulk:   []float64{26, 153, 159, 176, 200, 780, 211000, 344000, 398000, 434000, 518000},
			spread: [2]float64{0.75, 0.42},
			tilts:  []tilt{{2, 1.71, 0.45}, {4, 0.60, 0.77}},
		},
		{
			name: "ed69ec", users: 18, busy: 2.11,
			sizes:  []share{{1, 0.01581}},
			length: []float64{1, 1, 2, 3, 6, 6, 10, 11, 18, 52, 58, 60, 67, 67},
			gaps:   []float64{0, 4, 5, 6, 8, 46, 78, 188, 300},
			few:    []float64{10, 390, 1240, 4000, 62200, 75400, 96100, 118000, 129000, 152000, 221000},
			bulk:   []float64{6, 682, 732, 870, 1270, 6860, 19300, 46200, 69000, 80900, 88000},
			spread: [2]float64{0.38, 0.86},
		},
		{
			name: "7f04ca", users: 29, busy: 1.11,
			sizes:  []share{{1, 0.002839}, {4, 0.004579}, {8, 0.002394}, {16, 0.000153}},
			length: []float64{1, 1, 1, 1, 2, 2, 2, 3, 4, 8, 16, 23, 23, 23},
			gaps:   []float64{0, 4, 5, 7, 33, 62, 131, 265, 270},
			many:   []float64{1, 1, 1, 1, 2, 2, 2, 3, 4, 5, 8, 10, 12, 16},
			few:    []float64{58, 270, 470, 2100, 14300, 149000, 345000, 586000, 688000, 1240000, 1260000},
			spread: [2]float64{0.51, 0.51},
			tilts:  []tilt{{4, -0.43, 1.02}, {8, 0.28, 1.11}},
		},
		{
			name: "2869ce", users: 24, busy: 1.04,
			sizes:  []share{{1, 0.000891}, {2, 5.6e-05}, {4, 0.000139}, {8, 0.004078}, {32, 0.00071}},
			length: []float64{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 10, 10, 10, 10},
			gaps:   []float64{7, 8, 10, 20, 163, 257, 268, 268, 268},
			many:   []float64{1, 1, 1, 1, 1, 2, 2, 2, 3, 5, 6, 6, 8, 11},
			few:    []float64{132, 155, 218, 3400, 7480, 10900, 20000, 27200, 41800, 52300, 52300},
			spread: [2]float64{0.75, 0.75},
			tilts:  []tilt{{8, -0.13, 0.81}, {32, -0.07, 0.42}},
		},
	},
}

// phillyUsers is philly with users who repeat their jobs. Its workloads have the submits, sizes, virtual clusters and,
// in another order, run times of philly's; what differs is who submits a job and after which others it comes.
//
// Measured on the recorded table are the drift, which is the slow part of the correlation between run times of 6214e9's
// one-GPU jobs that are 20, 300 and 1,000 jobs apart (.66, .39, .21; 460 come a day), the same of the beat (.34 from
// one tick to the next, .15 after 36), and the tilts, of sizes with at least thirty jobs in a virtual cluster. That two
// of three bursts repeat a task is the share of recurring tasks in Alibaba's PAI (Weng et al., "MLaaS in the Wild",
// NSDI 2022). Sessions and the shares of users and tasks are assumed: they are such that knowing the user and the name
// improves a prediction from history as little as in logs that have both (docs/reference/traces.md).
var phillyUsers = func() *profile {
	p := philly
	p.habits = &habits{session: 0.7, recurs: 0.65, team: 0.45, days: 2.5, user: 0.2, task: 0.25, beat: 0.33, ticks: 45}
	return &p
}()
