/** What was read of one page. */
export interface ReadPage {
  readonly page: number
  /** Of the whole book. */
  readonly pages: number
  readonly words: number
}

/** Books whose pages are still coming in. It is memory: pages that were put here are gone with the process. */
export class PendingBooks {
  readonly #books = new Map<string, Map<number, number>>()
  readonly #most: number

  /** `most`: beyond it the book that was begun first is given up. */
  constructor(maxBooks = 1_000) {
    this.#most = maxBooks
  }

  /** Answers the words of the book with its last page. A page that comes again changes nothing. */
  put(book: string, { page, pages, words }: ReadPage): number | undefined {
    const read = this.#books.get(book) ?? new Map<number, number>()
    read.set(page, words)
    this.#books.set(book, read)
    if (read.size >= pages) {
      this.#books.delete(book)
      return Array.from(read.values()).reduce((sum, words) => sum + words, 0)
    }
    const [oldest] = this.#books.keys()
    if (this.#books.size > this.#most && oldest !== undefined) this.#books.delete(oldest)
    return undefined
  }
}
