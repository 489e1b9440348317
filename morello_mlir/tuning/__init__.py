"""Beyond the model's optimum: the k cheapest schedules, and which of them this machine runs fastest."""
