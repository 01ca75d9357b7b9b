"""What editors ask about a text: findings, names, completion, outline. `server` answers over the language server
protocol; the other files know nothing of it, and give character offsets."""
