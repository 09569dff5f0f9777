/* A library that is loaded, called and unloaded: built three times, with the same size but other frames (b.so), and
 * with its call elsewhere too (c.so). */
#ifndef FRAME_BYTES
#define FRAME_BYTES 40
#endif

void plugin_call(void (*f)(void));

void plugin_call(void (*f)(void))
{
    char block[FRAME_BYTES];
#ifdef SHIFTED
    __asm__ volatile("nop; nop; nop");
#endif
    __asm__ volatile("" : : "r"(block) : "memory");
    f();
    __asm__ volatile("" : : "r"(block) : "memory");
}
