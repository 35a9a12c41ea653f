/** The topics that an operator can follow. */
export const topics = ["requests", "limits", "configuration", "tasks", "dead_letters", "queues", "workers"] as const
export type Topic = (typeof topics)[number]

/** The Redis key of the number of the latest batch. It exists while somebody follows the topic. */
export const numberKey = (key: (name: string) => string, topic: Topic): string => key(`{live}:${topic}:number`)

/** The Redis key of the latest batches: a stream, whose ids are the numbers of the batches. */
export const batchesKey = (key: (name: string) => string, topic: Topic): string => key(`{live}:${topic}:batches`)
