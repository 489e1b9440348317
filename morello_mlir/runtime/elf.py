"""The symbols that an object file needs from elsewhere.

Linking an object with a symbol that nobody defines ends the process or says little; so we look first, and can name it.
"""

from __future__ import annotations

import struct

_SHT_SYMTAB = 2


def undefined_symbols(data: bytes) -> list[str]:
    """The undefined symbols of a 64-bit little-endian ELF object, in order. Empty for other formats (Mach-O, COFF)."""
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    (table,) = struct.unpack_from("<Q", data, 40)
    entry_size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry_size) for i in range(count)]
    names: list[str] = []
    for section in sections:
        if section[1] != _SHT_SYMTAB:
            continue
        offset, size, strings = section[4], section[5], sections[section[6]]
        for at in range(offset, offset + size, 24):
            name, _info, _other, index = struct.unpack_from("<IBBH", data, at)
            if name and index == 0:
                start = strings[4] + name
                names.append(data[start : data.index(b"\0", start)].decode())
    return names
