// The events of one session in the order they were sent, so that a stream can be taken up again.

export function eventStore() {
  const events = []; // an event's id is its place and its stream
  return {
    async storeEvent(stream, message) {
      return `${events.push({ stream, message })}:${stream}`;
    },
    async getStreamIdForEventId(id) {
      return events[Number.parseInt(id, 10) - 1]?.stream;
    },
    async replayEventsAfter(id, { send }) {
      const place = Number.parseInt(id, 10);
      const { stream } = events[place - 1];
      // A message without members is the one that primed the stream.
      for (const [index, event] of events.entries())
        if (index >= place && event.stream === stream && Object.keys(event.message).length > 0)
          await send(`${index + 1}:${stream}`, event.message);
      return stream;
    },
  };
}
