/* A plugin of QEMU: how often each block of instructions ran. bench/emulated_counts.py compiles and reads it.

   The interface is declared here as version 1 of it is documented, so that no header of QEMU is needed. At the end the
   file that `out=` names gets a line for each block: its address, its instructions, and how often it was begun. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

struct block {
    uint64_t address, instructions, count;
    struct block *next;
};

static struct block *blocks;
static const char *out;

/* Blocks are translated under a lock of QEMU's. */
static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    struct block *block = calloc(1, sizeof *block);
    (void)id;
    if (!block)
        return;
    block->address = qemu_plugin_tb_vaddr(tb);
    block->instructions = qemu_plugin_tb_n_insns(tb);
    block->next = blocks;
    blocks = block;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &block->count, 1);
}

static void ended(plugin_id id, void *data)
{
    FILE *file = fopen(out, "w");
    (void)id;
    (void)data;
    if (!file)
        return;
    for (struct block *block = blocks; block; block = block->next)
        if (block->count)
            fprintf(file, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", block->address, block->instructions, block->count);
    fclose(file);
}

__attribute__((visibility("default"))) int
qemu_plugin_install(plugin_id id, const void *info, int count, char **arguments)
{
    (void)info;
    for (int i = 0; i < count; i++)
        if (!strncmp(arguments[i], "out=", 4))
            out = strdup(arguments[i] + 4);
    if (!out)
        return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, 0);
    return 0;
}
