interface ReadPage {
  readonly page: number
  readonly pages: number
  readonly words: number
}

/** The books that lack pages. They are kept in memory only, so a restart loses them. */
export class PendingBooks {
  readonly #books = new Map<string, Map<number, number>>()
  readonly #most: number

  /** If there are more than `maxBooks` books, the oldest book is dropped. */
  constructor(maxBooks = 1_000) {
    this.#most = maxBooks
  }

  /** Adds a page. Returns the word count of the book if all pages are present. Adding a page twice has no effect. */
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
