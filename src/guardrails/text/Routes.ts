import {
  chatChunk,
  chatRequest,
  chatResponse,
  completionsChunk,
  completionsRequest,
  completionsResponse,
  embeddingsRequest,
  embeddingsResponse
} from "./ChatRules.ts"
import { type EventType, messagesEvents, responsesEvents, unknownEvent } from "./EventTypes.ts"
import { batchesRequest, batchesResponse, messagesRequest, messagesResponse } from "./MessagesRules.ts"
import type { TextRoute } from "./Place.ts"
import { responsesRequest, responsesResponse } from "./ResponsesRules.ts"
import { type Rule, unknown, unknownPiece } from "./Rule.ts"

interface RouteRules {
  readonly request: Rule
  readonly response: Rule
  /** The events by their type. */
  readonly events: Readonly<Record<string, EventType>>
  /** An event of another type, or without one. */
  readonly event: EventType
}

const pieces = { rule: unknownPiece, ends: [] }

export const routeRules: Readonly<Record<TextRoute, RouteRules>> = {
  chat: { request: chatRequest, response: chatResponse, events: {}, event: { rule: chatChunk, ends: [] } },
  completions: {
    request: completionsRequest,
    response: completionsResponse,
    events: {},
    event: { rule: completionsChunk, ends: [] }
  },
  responses: {
    request: responsesRequest,
    response: responsesResponse,
    events: responsesEvents,
    event: unknownEvent
  },
  messages: { request: messagesRequest, response: messagesResponse, events: messagesEvents, event: unknownEvent },
  message_batches: { request: batchesRequest, response: batchesResponse, events: {}, event: pieces },
  embeddings: { request: embeddingsRequest, response: embeddingsResponse, events: {}, event: pieces },
  other: { request: unknown, response: unknown, events: {}, event: pieces }
}
