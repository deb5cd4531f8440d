"""The numbers that the source notebooks print, with the recipe that gives them: float32 on the CPU.

Printed to 4 decimals, so they are compared with atol=1e-4.
"""

from typing import Any

import torch


def assert_close(found: Any, expected: Any, atol: float = 1.01e-4) -> None:
    """A tensor of numbers that were printed to four decimals."""
    torch.testing.assert_close(torch.as_tensor(found), torch.as_tensor(expected), atol=atol, rtol=0)


# Self-attention without weights. Query "journey" (row 1); a name that ends in _1 belongs to it.
SENTENCE = ["Your", "journey", "starts", "with", "one", "step"]
INPUTS = [
    [0.43, 0.15, 0.89],
    [0.55, 0.87, 0.66],
    [0.57, 0.85, 0.64],
    [0.22, 0.58, 0.33],
    [0.77, 0.25, 0.1],
    [0.05, 0.8, 0.55],
]
SIMPLE_SCORES_1 = [0.9544, 1.495, 1.4754, 0.8434, 0.707, 1.0865]
SIMPLE_SUM_NORMALISED_1 = [0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656]
SIMPLE_WEIGHTS_1 = [0.1385, 0.2379, 0.2333, 0.124, 0.1082, 0.1581]
SIMPLE_CONTEXT_1 = [0.4419, 0.6515, 0.5683]
SIMPLE_SCORES = [
    [0.9995, 0.9544, 0.9422, 0.4753, 0.4576, 0.631],
    [0.9544, 1.495, 1.4754, 0.8434, 0.707, 1.0865],
    [0.9422, 1.4754, 1.457, 0.8296, 0.7154, 1.0605],
    [0.4753, 0.8434, 0.8296, 0.4937, 0.3474, 0.6565],
    [0.4576, 0.707, 0.7154, 0.3474, 0.6654, 0.2935],
    [0.631, 1.0865, 1.0605, 0.6565, 0.2935, 0.945],
]
SIMPLE_WEIGHTS = [
    [0.2098, 0.2006, 0.1981, 0.1242, 0.122, 0.1452],
    [0.1385, 0.2379, 0.2333, 0.124, 0.1082, 0.1581],
    [0.139, 0.2369, 0.2326, 0.1242, 0.1108, 0.1565],
    [0.1435, 0.2074, 0.2046, 0.1462, 0.1263, 0.172],
    [0.1526, 0.1958, 0.1975, 0.1367, 0.1879, 0.1295],
    [0.1385, 0.2184, 0.2128, 0.142, 0.0988, 0.1896],
]
SIMPLE_CONTEXT = [
    [0.4421, 0.5931, 0.579],
    [0.4419, 0.6515, 0.5683],
    [0.4431, 0.6496, 0.5671],
    [0.4304, 0.6298, 0.551],
    [0.4671, 0.591, 0.5266],
    [0.4177, 0.6503, 0.5645],
]

# Weights as parameters: manual_seed(123), then W_query, W_key, W_value = rand(3, 2).
TRAINABLE_QUERY_1 = [0.4306, 1.4551]
TRAINABLE_SCORE_11 = 1.8524
TRAINABLE_SCORES_1 = [1.2705, 1.8524, 1.8111, 1.0795, 0.5577, 1.544]
TRAINABLE_WEIGHTS_1 = [0.15, 0.2264, 0.2199, 0.1311, 0.0906, 0.182]
TRAINABLE_CONTEXT_1 = [0.3061, 0.821]
SELF_ATTENTION_V1 = [
    [0.2996, 0.8053],
    [0.3061, 0.821],
    [0.3058, 0.8203],
    [0.2948, 0.7939],
    [0.2927, 0.7891],
    [0.299, 0.804],
]

# Weights as linear layers: manual_seed(789), then Linear(3, 2, bias=False) for query, key, value.
SELF_ATTENTION_V2 = [
    [-0.0739, 0.0713],
    [-0.0748, 0.0703],
    [-0.0749, 0.0702],
    [-0.076, 0.0685],
    [-0.0763, 0.0679],
    [-0.0754, 0.0693],
]
V2_WEIGHTS = [
    [0.1921, 0.1646, 0.1652, 0.155, 0.1721, 0.151],
    [0.2041, 0.1659, 0.1662, 0.1496, 0.1665, 0.1477],
    [0.2036, 0.1659, 0.1662, 0.1498, 0.1664, 0.148],
    [0.1869, 0.1667, 0.1668, 0.1571, 0.1661, 0.1564],
    [0.183, 0.1669, 0.167, 0.1588, 0.1658, 0.1585],
    [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529],
]

# The layers of SELF_ATTENTION_V2 with a causal mask; scores without scale.
V2_SCORES_MASKED_ROW_5 = [0.3408, 0.127, 0.129, 0.0198, 0.129, 0.0078]
CAUSAL_WEIGHTS = [
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.5517, 0.4483, 0.0, 0.0, 0.0, 0.0],
    [0.38, 0.3097, 0.3103, 0.0, 0.0, 0.0],
    [0.2758, 0.246, 0.2462, 0.2319, 0.0, 0.0],
    [0.2175, 0.1983, 0.1984, 0.1888, 0.1971, 0.0],
    [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529],
]

# manual_seed(123), then Linear(3, 2, bias=False) for query, key, value.
CAUSAL_ATTENTION = [
    [-0.4519, 0.2216],
    [-0.5874, 0.0058],
    [-0.63, -0.0632],
    [-0.5675, -0.0843],
    [-0.5526, -0.0981],
    [-0.5299, -0.1081],
]

# manual_seed(123), then two heads like CAUSAL_ATTENTION, one after the other.
STACKED_HEADS = [
    [-0.4519, 0.2216, 0.4772, 0.1063],
    [-0.5874, 0.0058, 0.5891, 0.3257],
    [-0.63, -0.0632, 0.6202, 0.386],
    [-0.5675, -0.0843, 0.5478, 0.3589],
    [-0.5526, -0.0981, 0.5321, 0.3428],
    [-0.5299, -0.1081, 0.5077, 0.3493],
]

# manual_seed(123), then Linear(3, 2, bias=False) three times and out_proj = Linear(2, 2); two heads.
WEIGHT_SPLITS = [
    [0.319, 0.4858],
    [0.2943, 0.3897],
    [0.2856, 0.3593],
    [0.2693, 0.3873],
    [0.2639, 0.3928],
    [0.2575, 0.4028],
]

# a, shape (1, 2, 3, 4), and a @ a.transpose(2, 3).
HEADS_A = [
    [
        [[0.2745, 0.6584, 0.2775, 0.8573], [0.8993, 0.039, 0.9268, 0.7388], [0.7179, 0.7058, 0.9156, 0.434]],
        [[0.0772, 0.3565, 0.1479, 0.5331], [0.4066, 0.2318, 0.4545, 0.9737], [0.4606, 0.5159, 0.422, 0.5786]],
    ]
]
HEADS_A_PRODUCT = [
    [
        [[1.3208, 1.1631, 1.2879], [1.1631, 2.215, 1.8424], [1.2879, 1.8424, 2.0402]],
        [[0.4391, 0.7003, 0.5903], [0.7003, 1.3737, 1.062], [0.5903, 1.062, 0.9912]],
    ]
]

# Computed by hand, query "shiny"; the context vector is rounded at each step, hence accurate to 5e-4.
SHINY = {"Hello": [0.34, 0.22, 0.54], "shiny": [0.53, 0.34, 0.98], "sun": [0.29, 0.54, 0.93]}
SHINY_SCORES = [0.7842, 1.3569, 1.2487]
SHINY_WEIGHTS = [0.2291, 0.4063, 0.3646]
SHINY_CONTEXT = [0.3992, 0.3858, 0.861]

# manual_seed(1337), x = randn(4, 8, 2): the first element of the batch and its running average.
AVERAGE_X0 = [
    [0.1808, -0.07],
    [-0.3596, -0.9152],
    [0.6258, 0.0255],
    [0.9545, 0.0643],
    [0.3612, 1.1679],
    [-1.3499, -0.5102],
    [0.236, -0.2398],
    [-0.9211, 1.5433],
]
AVERAGE_XBOW0 = [
    [0.1808, -0.07],
    [-0.0894, -0.4926],
    [0.149, -0.3199],
    [0.3504, -0.2238],
    [0.3525, 0.0545],
    [0.0688, -0.0396],
    [0.0927, -0.0682],
    [-0.0341, 0.1332],
]

# manual_seed(1337), x = randn(4, 8, 32), then key and query = Linear(32, 16, bias=False); no scale.
ONE_HEAD_WEIGHTS0_ROW_7 = [0.021, 0.0843, 0.0555, 0.2297, 0.0573, 0.0709, 0.2423, 0.2391]

# Softmax of [0.1, -0.2, 0.3, -0.2, 0.5], and of eight times that.
SOFTMAX_DIFFUSE = [0.1925, 0.1426, 0.2351, 0.1426, 0.2872]
SOFTMAX_SHARP = [0.0326, 0.003, 0.1615, 0.003, 0.8]

# Tiny Shakespeare, 65 characters: "Hi there!" and "First Cit"; the split into training and validation.
CHAR_ENCODED_HI_THERE = [20, 47, 1, 58, 46, 43, 56, 43, 2]
CHAR_FIRST_9 = [18, 47, 56, 57, 58, 1, 15, 47, 58]
SPLIT = 0.9

# manual_seed(1337), four starts of windows of 8 in the training part: the first row and its targets.
BATCH_X0 = [24, 43, 58, 5, 57, 1, 46, 43]
BATCH_Y0 = [43, 58, 5, 57, 1, 46, 43, 39]

# That batch with manual_seed(1337) again before Embedding(65, 65); and the mean of the last 500 of 10,000 steps.
BIGRAM_LOSS_UNTRAINED = 4.8786
BIGRAM_LOSS_TRAINED = 2.47

# The Verdict in GPT-2 ids; windows of 4.
VERDICT_FIRST_IDS = [40, 367, 2885, 1464, 1807, 3619, 402, 271, 10899, 2138, 257, 7026, 15632, 438, 2016, 257]
VERDICT_STRIDE_1_ROWS = [[40, 367, 2885, 1464], [367, 2885, 1464, 1807], [2885, 1464, 1807, 3619]]
VERDICT_STRIDE_4_ROWS = [[40, 367, 2885, 1464], [1807, 3619, 402, 271], [10899, 2138, 257, 7026]]

# manual_seed(123), Embedding(6, 3).weight[3].
EMBEDDING_ROW_3 = [-0.4015, 0.9666, -1.1481]

# The Verdict as a word list: 1,130 words and two special tokens; a text with a word it lacks.
VERDICT_CHARACTERS, VERDICT_WORDS, VERDICT_VOCABULARY, VERDICT_GPT2_IDS = 20479, 4690, 1132, 5145
TEA_TEXT = "Hello, do you like tea? <|endoftext|> In the sunlit terraces of the palace."
TEA_WORD_IDS = [1131, 5, 355, 1126, 628, 975, 10, 1130, 55, 988, 956, 984, 722, 988, 1131, 7]
