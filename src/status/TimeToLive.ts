/** Ten years, of everything that is kept of a task: the stores of one program are given one time. */
export const maxSeconds = 10 * 365 * 86_400
