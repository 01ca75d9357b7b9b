"""How a container begins: what tells it from other files, without the code that reads it."""

#: First bytes of every ELF file.
ELF = b"\x7fELF"
#: Machine number of our containers, unused by any processor; its bytes read "PT".
MACHINE = 0x5450
