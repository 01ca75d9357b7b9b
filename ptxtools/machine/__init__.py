"""Between a program and what runs it: a launch, who is resident, who waits, and the view of stopped lanes."""
