// The prompts that the suite gets, by name: what they are listed with, and the contents of their messages.

import { embedded, image, text } from './contents.mjs';

const wanted = (...names) => names.map((name) => ({ name, description: `The argument ${name}`, required: true }));

export const prompts = {
  test_simple_prompt: {
    description: 'Without arguments',
    contents: () => [text('This is a simple prompt for testing.')],
  },
  test_prompt_with_arguments: {
    description: 'With two arguments',
    arguments: wanted('arg1', 'arg2'),
    contents: ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  },
  test_prompt_with_embedded_resource: {
    description: 'With a resource in it',
    arguments: wanted('resourceUri'),
    contents: ({ resourceUri }) => [
      embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
      text('Please process the embedded resource above.'),
    ],
  },
  test_prompt_with_image: {
    description: 'With a picture in it',
    contents: () => [image, text('Please analyze the image above.')],
  },
};

/** What may be said for `arg1` and `arg2`, as completions. */
export const completions = ['paris', 'park', 'party'];
