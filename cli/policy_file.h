/*
 * policy_file.h: the file of run --policy.
 */
#ifndef MEMPROF_POLICY_FILE_H
#define MEMPROF_POLICY_FILE_H

/* Its text, to free, which is a policy; has_orders: by which programs are asked to do something. 0, or EXIT_USAGE after
 * a line for each line of the file that is wrong, or EXIT_FAILED. */
int policy_file(const char *path, char **text, int *has_orders);

#endif
