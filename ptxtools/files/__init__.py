"""Files of users: reading what may have no end, and writing whole or not at all."""
