/* Where functions begin, as the sorted table of .eh_frame_hdr tells: stripped files have it, too. */
#include "symbols_private.h"

#include "../../common/search.h"

#include <gelf.h>
#include <string.h>

#define HEAD_BYTES    12
#define ENTRY_BYTES   8
#define FRAME_ENCODED 0x1b /* what linkers write: 4 bytes with a sign, relative to the program counter; */
#define COUNT_ENCODED 0x03 /* 4 bytes; */
#define TABLE_ENCODED 0x3b /* 4 bytes with a sign, relative to the header */

static int64_t signed_at(const unsigned char *bytes)
{
    int32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t last_begin(const GElf_Phdr *header, const unsigned char *bytes, size_t length, uint64_t address)
{
    const unsigned char *table = bytes + HEAD_BYTES;
    if (length < HEAD_BYTES || bytes[0] != 1 || bytes[1] != FRAME_ENCODED || bytes[2] != COUNT_ENCODED ||
        bytes[3] != TABLE_ENCODED)
        return 0;
    uint64_t count = (uint32_t)signed_at(bytes + 8);
    if (count > (length - HEAD_BYTES) / ENTRY_BYTES)
        return 0;
#define BEGIN(i) (header->p_vaddr + (uint64_t)signed_at(table + (i)*ENTRY_BYTES))
    const size_t behind = SEARCH_FIRST(count, i, BEGIN(i) <= address);
    return behind ? BEGIN(behind - 1) : 0;
#undef BEGIN
}

uint64_t symbols_function_begin(Elf *elf, uint64_t address)
{
    size_t count;
    GElf_Phdr header;
    if (elf_getphdrnum(elf, &count))
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_GNU_EH_FRAME)
            continue;
        Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_BYTE);
        return data && data->d_buf ? last_begin(&header, data->d_buf, data->d_size, address) : 0;
    }
    return 0;
}
