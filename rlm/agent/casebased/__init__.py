"A model without a language model: it does what worked before."
