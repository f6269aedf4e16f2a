// The program of app.py in JavaScript. The first argument is the exporter's package.
const { NodeTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-node')
const { OTLPTraceExporter } = require(process.argv[2])
const { trace, context } = require('@opentelemetry/api')

const text = (role, content) => JSON.stringify([{ role, parts: [{ type: 'text', content }] }])

async function main () {
  const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] })
  provider.register()
  const tracer = provider.getTracer('app')
  for (let number = 0; number < 2; number++) {
    const request = tracer.startSpan('request', { attributes: { 'session.id': 's1' } })
    const inside = trace.setSpan(context.active(), request)
    const documents = [{ id: 'a', content: `Paris has ${number} rivers.`, score: 0.5 }]
    tracer.startSpan('retrieve', {
      attributes: { 'gen_ai.operation.name': 'retrieval', 'gen_ai.retrieval.documents': JSON.stringify(documents) }
    }, inside).end()
    await new Promise(resolve => setTimeout(resolve, 5))
    tracer.startSpan('chat', {
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.response.model': 'javascript-model',
        'gen_ai.input.messages': text('user', 'How many rivers has Paris?'),
        'gen_ai.output.messages': text('assistant', `It has ${number}.`)
      }
    }, inside).end()
    request.end()
  }
  await provider.shutdown()
}

main()
