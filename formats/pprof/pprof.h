/*
 * pprof.h: the fields of profile.proto by their numbers, for the encoder and the decoder. A file is one message
 * Profile in gzip; its fields may come in any order. Strings are indices of string_table, whose first is "".
 */
#ifndef MEMPROF_PPROF_H
#define MEMPROF_PPROF_H

enum pprof_wire { PPROF_VARINT = 0, PPROF_FIXED64 = 1, PPROF_BYTES = 2, PPROF_FIXED32 = 5 };

enum pprof_profile_field {
    PPROF_PROFILE_sample_type = 1, /* of each value of a sample */
    PPROF_PROFILE_sample = 2,
    PPROF_PROFILE_mapping = 3, /* the first is the program's */
    PPROF_PROFILE_location = 4,
    PPROF_PROFILE_function = 5,
    PPROF_PROFILE_string_table = 6,
    PPROF_PROFILE_drop_frames = 7,
    PPROF_PROFILE_keep_frames = 8,
    PPROF_PROFILE_time_nanos = 9,
    PPROF_PROFILE_duration_nanos = 10,
    PPROF_PROFILE_period_type = 11,
    PPROF_PROFILE_period = 12,
    PPROF_PROFILE_comment = 13,
    PPROF_PROFILE_default_sample_type = 14
};

enum pprof_value_type_field { PPROF_VALUE_TYPE_type = 1, PPROF_VALUE_TYPE_unit = 2 };

enum pprof_sample_field {
    PPROF_SAMPLE_location_id = 1, /* innermost first; packed */
    PPROF_SAMPLE_value = 2,       /* packed */
    PPROF_SAMPLE_label = 3
};

enum pprof_label_field { PPROF_LABEL_key = 1, PPROF_LABEL_str = 2, PPROF_LABEL_num = 3, PPROF_LABEL_num_unit = 4 };

enum pprof_mapping_field {
    PPROF_MAPPING_id = 1,
    PPROF_MAPPING_memory_start = 2,
    PPROF_MAPPING_memory_limit = 3,
    PPROF_MAPPING_file_offset = 4,
    PPROF_MAPPING_filename = 5,
    PPROF_MAPPING_build_id = 6,
    PPROF_MAPPING_has_functions = 7,
    PPROF_MAPPING_has_filenames = 8,
    PPROF_MAPPING_has_line_numbers = 9,
    PPROF_MAPPING_has_inline_frames = 10
};

enum pprof_location_field {
    PPROF_LOCATION_id = 1,
    PPROF_LOCATION_mapping_id = 2, /* 0: none */
    PPROF_LOCATION_address = 3,
    PPROF_LOCATION_line = 4, /* several where functions were inlined: innermost first */
    PPROF_LOCATION_is_folded = 5
};

enum pprof_line_field { PPROF_LINE_function_id = 1, PPROF_LINE_line = 2 };

enum pprof_function_field {
    PPROF_FUNCTION_id = 1,
    PPROF_FUNCTION_name = 2,
    PPROF_FUNCTION_system_name = 3, /* as in the symbol table */
    PPROF_FUNCTION_filename = 4,
    PPROF_FUNCTION_start_line = 5
};

#endif
