export interface JsonAnswer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: the tests look at the JSON that any client sees
  readonly body: any
}
